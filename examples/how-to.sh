# The command of a published how-to for 4 x RTX 4090 (its settings; the paths are placeholders). No vLLM release runs it as meant:
#   longreach lint --gpus 4xRTX4090 examples/how-to.sh
#   longreach lint --gpus 4xRTX4090 --fix examples/how-to.sh
vllm serve Qwen/Qwen3.6-27B \
  --tensor-parallel-size 4 \
  --max-model-len 750000 \
  --rope-scaling '{"rope_type":"yarn","factor":3.0,"original_max_position_embeddings":262144}' \
  --kv-cache-dtype fp8_e4m3 \
  --kv-cache-memory 10G \
  --enable-prefix-caching \
  --enable-chunked-prefill \
  --max-num-batched-tokens 8192 \
  --no-scheduler-reserve-full-isl \
  --mm-ipc-gpu-memory-gb 1 \
  --mm-processor-kwargs '{"max_pixels": 1003520}' \
  --limit-mm-per-prompt '{"image": 4}' \
  --compilation-config '{"cudagraph_mode":"PIECEWISE"}' \
  --disable-custom-all-reduce \
  --reasoning-parser qwen3 \
  --tool-call-parser qwen3_coder \
  --enable-auto-tool-choice \
  --enable-prompt-tokens-details \
  --speculative-config '{"method":"mtp","num_speculative_tokens":3,"use_local_argmax_reduction":true}' \
  --kv-transfer-config '{"kv_connector":"OffloadingConnector","kv_role":"kv_both","kv_connector_extra_config":{"cpu_bytes_to_use":214748364800,"eviction_policy":"arc","secondary_tiers":[{"type":"fs","root_dir":"/mnt/nvme/kv"}],"n_read_threads":32,"n_write_threads":16}}'
