"""Does a KV tier pay? One workload against GPU only, + CPU, + disk, each freshly started, judged by intervals."""
