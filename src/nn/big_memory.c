/* big_memory.c - see big_memory.h.  mmap hands out zero pages, so nothing is cleared; touching is
 * one write a page, shared by the team, because the kernel's zeroing is what takes the time. */
#include "big_memory.h"

#include <stdio.h>
#include <sys/mman.h>

#define HUGE_PAGE  ((size_t)2 << 20)
#define SMALL_PAGE ((size_t)4096)

/* Stands right before the block, at the end of the page before it. */
struct header {
    void *mapping;
    size_t size;
};

void *mr_big_alloc(size_t bytes)
{
    size_t size = bytes + 2 * HUGE_PAGE; /* the header, and room to align behind it */
    if (size < bytes)
        return NULL;
    char *mapping = mmap(NULL, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED)
        return NULL;
    char *block = mapping + HUGE_PAGE - (uintptr_t)mapping % HUGE_PAGE;
    madvise(block, bytes, MADV_HUGEPAGE); /* a wish */
    ((struct header *)block)[-1] = (struct header){mapping, size};
    return block;
}

void mr_big_free(void *block)
{
    if (!block)
        return;
    struct header h = ((struct header *)block)[-1];
    munmap(h.mapping, h.size);
}

struct touch {
    volatile char *block;
    size_t bytes;
};

static void touch_part(void *arg, unsigned rank, unsigned n)
{
    struct touch *t = arg;
    uint64_t end = mr_team_share(t->bytes, HUGE_PAGE, rank + 1, n);
    for (uint64_t i = mr_team_share(t->bytes, HUGE_PAGE, rank, n); i < end; i += SMALL_PAGE)
        t->block[i] = t->block[i];
}

void mr_big_touch(void *block, size_t bytes, struct mr_team *team)
{
    struct touch t = {block, bytes};
    mr_team_run(team, touch_part, &t);
}

/* The number in a file that holds one, or `otherwise`. */
static uint64_t number_in(const char *path, const char *format, uint64_t otherwise)
{
    FILE *f = fopen(path, "re");
    char line[256];
    uint64_t value;
    int found = 0;
    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, format, &value) == 1;
    if (f)
        fclose(f);
    return found ? value : otherwise;
}

uint64_t mr_big_available(void)
{
    uint64_t kib = number_in("/proc/meminfo", "MemAvailable: %lu kB", UINT64_MAX >> 10);
    uint64_t limit = number_in("/sys/fs/cgroup/memory.max", "%lu", UINT64_MAX);
    uint64_t used = number_in("/sys/fs/cgroup/memory.current", "%lu", 0);
    uint64_t left = limit > used ? limit - used : 0;
    return kib << 10 < left ? kib << 10 : left;
}
