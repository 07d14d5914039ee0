"""The loop that measuring runs on."""

import resource

from longreach.measure import event_loop


def test_there_are_as_many_sockets_as_the_user_may_have() -> None:
    async def read_limits() -> tuple[int, int]:
        return resource.getrlimit(resource.RLIMIT_NOFILE)

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[1]), before[1]))
    try:
        assert event_loop.run(read_limits()) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
