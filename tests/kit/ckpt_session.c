/* ckpt_session.c - see ckpt_session.h. */
#include "unit.h"

#include "ckpt_session.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

char kit_fast[512], kit_slow[512];
char kit_why[4096];
struct mr_error kit_err;

struct tempdir *kit_begin(void **state)
{
    struct tempdir *t = *state;
    snprintf(kit_fast, sizeof kit_fast, "%s/fast", t->path);
    snprintf(kit_slow, sizeof kit_slow, "%s/deep/slow", t->path);
    return t;
}

struct mr_checkpoint *kit_open(struct ckpt_kit *k, struct mr_checkpoint_opts o,
                               const struct mr_out_hook *hook)
{
    struct mr_checkpoint *c = NULL;
    struct mr_error err = {0};
    o.dir = o.dir ? o.dir : kit_fast;
    if (mr_checkpoint_open_hooked(k->arrays, KIT_N_ARRAYS, &o, hook, &c, &err))
        fail_msg("%s", err.text);
    return c;
}

void kit_update(struct mr_checkpoint *c, struct ckpt_kit *k, uint64_t step)
{
    for (unsigned i = 0; i < KIT_N_ARRAYS; i++) {
        mr_checkpoint_before_write(c, i);
        ckpt_kit_fill_one(k, i, step, 0);
    }
}

void kit_save(struct mr_checkpoint *c, struct ckpt_kit *k, uint64_t step)
{
    kit_update(c, k, step);
    struct mr_error err = {0};
    int r = mr_checkpoint_begin(c, step, &err);
    if (r)
        fail_msg("step %llu: %d, %s", (unsigned long long)step, r, err.text);
}

int kit_save_version(struct mr_checkpoint *c, struct ckpt_kit *k, uint64_t step, uint64_t version)
{
    for (unsigned i = 0; i < KIT_N_ARRAYS; i++) {
        mr_checkpoint_before_write(c, i);
        ckpt_kit_fill_one(k, i, step, version);
    }
    kit_err = (struct mr_error){0};
    return mr_checkpoint_begin(c, step, &kit_err);
}

void kit_assert_found(struct ckpt_kit *k, const char *dir, const char *drain_dir, uint64_t step,
                      uint64_t version)
{
    struct mr_restore_opts o = {.dir = dir, .drain_dir = drain_dir};
    struct mr_restored found;
    struct mr_error err = {0};
    ckpt_kit_scramble(k);
    if (mr_checkpoint_restore(k->arrays, KIT_N_ARRAYS, &o, &found, &err))
        fail_msg("%s", err.text);
    assert_int_equal(found.step, step);
    assert_true(ckpt_kit_is(k, step, version));
}

void kit_idle(struct mr_checkpoint *c)
{
    struct mr_checkpoint_stats s;
    do {
        sched_yield();
        mr_checkpoint_get_stats(c, &s);
    } while (s.saving || s.drain_waiting);
}

void kit_close(struct mr_checkpoint *c)
{
    struct mr_error err = {0};
    if (mr_checkpoint_close(c, &err))
        fail_msg("%s", err.text);
}

static void note_why(void *ctx, const char *path, const char *why)
{
    size_t n = strlen(kit_why);
    snprintf(kit_why + n, sizeof kit_why - n, "%s: %s\n", strrchr(path, '/') + 1, why);
}

int64_t kit_restored(struct ckpt_kit *k, const char *dir, const char *drain_dir)
{
    struct mr_restore_opts o = {.dir = dir, .drain_dir = drain_dir, .passed_over = note_why};
    struct mr_restored found;
    struct mr_error err = {0};
    kit_why[0] = 0;
    ckpt_kit_scramble(k);
    int r = mr_checkpoint_restore(k->arrays, KIT_N_ARRAYS, &o, &found, &err);
    if (r) {
        assert_true(err.code == r && err.text[0]);
        return r;
    }
    assert_true(ckpt_kit_is(k, found.step, 0));
    assert_true(found.bytes > k->bytes);
    return (int64_t)found.step;
}

unsigned kit_count(const char *dir, const char *ending)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    unsigned n = 0;
    assert_non_null(d);
    while ((e = readdir(d))) {
        size_t a = strlen(e->d_name), b = strlen(ending);
        n += a >= b && !strcmp(e->d_name + a - b, ending);
    }
    closedir(d);
    return n;
}

int kit_is_there(const char *dir, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

void kit_damage(const char *dir, const char *name, off_t at)
{
    char path[1024], byte;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(close(fd), 0);
}

int kit_gate_wait(void *ctx, const struct mr_out_op *op)
{
    struct kit_gate *g = ctx;
    if (op->tag != g->tag || op->kind != MR_OUT_CREATE)
        return 0;
    pthread_mutex_lock(&g->mu);
    g->n_at++;
    pthread_cond_broadcast(&g->cond);
    while (g->closed)
        pthread_cond_wait(&g->cond, &g->mu);
    pthread_mutex_unlock(&g->mu);
    return 0;
}

void kit_gate_open(struct kit_gate *g)
{
    pthread_mutex_lock(&g->mu);
    g->closed = 0;
    pthread_cond_broadcast(&g->cond);
    pthread_mutex_unlock(&g->mu);
}

int kit_break(void *ctx, const struct mr_out_op *op)
{
    struct kit_breaker *b = ctx;
    if (op->tag != b->tag || op->kind != b->kind || !b->code)
        return 0;
    int code = b->code;
    if (b->n_times && atomic_fetch_sub(&b->n_times, 1) == 1)
        b->code = 0;
    return code;
}

int kit_mount_small(const char *path, unsigned bytes)
{
    char size[32];
    snprintf(size, sizeof size, "size=%u", bytes);
    return !mkdir(path, 0755) && !unshare(CLONE_NEWNS) &&
           !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
           !mount("tmpfs", path, "tmpfs", 0, size);
}
