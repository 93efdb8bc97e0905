/* test_descriptors.c - what workers have of their process and what not: descriptors, signals, and
 * the folder from which they open files.  MILLRACE_ENGINE=threads or uring chooses the engine; the
 * build runs the program once for each. */
#include "unit.h"

#include "photo_set.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Open a pipeline and take a batch with descriptors below `limit` alone; `words` are its error's.
 */
static int first_batch_with(struct mr_dataset *d, const struct mr_pipeline_opts *o, rlim_t limit,
                            char *words, size_t cap)
{
    struct rlimit was;
    struct mr_pipeline *p = NULL;
    struct mr_batch *b;
    struct mr_error err = {0};
    getrlimit(RLIMIT_NOFILE, &was);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){limit, was.rlim_max});
    int code = mr_pipeline_open(d, o, &p, &err);
    if (!code)
        code = mr_pipeline_next(p, &b);
    setrlimit(RLIMIT_NOFILE, &was);
    snprintf(words, cap, "%s", p ? mr_pipeline_error(p) : err.text);
    if (code == 1)
        mr_batch_unref(b);
    mr_pipeline_close(p);
    return code;
}

/* Of workers without a map each has descriptors of its own; with one, eight share two.  A ring
 * takes one itself and has files open ahead as far as there is room: it gets eight more. */
static void few_descriptors_slow_a_run_down_but_change_nothing(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 100);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    for (int with_map = 0; with_map < 2; with_map++) {
        struct mr_pipeline_opts o = photo_set_opts();
        struct rlimit was, few;
        char words[600];
        o.map = with_map ? photo_set_number : NULL;
        o.map_bytes = with_map ? 8 : 0;
        int r, own = photo_set_engine == MR_ENGINE_THREADS && !with_map, fd = dup(0);
        uint64_t want = photo_set_hash(d, &o, &r);
        close(fd);
        o.threads = photo_set_engine == MR_ENGINE_URING ? 1 : 8;
        getrlimit(RLIMIT_NOFILE, &was);
        few = (struct rlimit){(rlim_t)fd + 2 + (photo_set_engine == MR_ENGINE_URING ? 8 : 0),
                              was.rlim_max};
        setrlimit(RLIMIT_NOFILE, &few);
        uint64_t got = photo_set_hash(d, &o, &r);
        setrlimit(RLIMIT_NOFILE, &was);
        assert_int_equal(r, 0);
        assert_int_equal(got, want);
        if (own) /* one, and none for the folder */
            assert_int_equal(first_batch_with(d, &o, STDERR_FILENO + 2, words, sizeof words), 1);
        /* None at all: a clear error and no substitution. */
        rlim_t none = own ? STDERR_FILENO + 1 : (rlim_t)fd;
        assert_int_equal(first_batch_with(d, &o, none, words, sizeof words), -EMFILE);
        assert_non_null(strstr(words, "Too many open files"));
    }
    mr_dataset_unref(d);
}

static void an_open_pipeline_keeps_nothing_else_open(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 100);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    int end[2];
    char c;
    assert_int_equal(pipe2(end, O_NONBLOCK), 0);
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    close(end[1]);
    assert_int_equal(read(end[0], &c, 1), 0); /* nobody can write any more: the end of the pipe */
    mr_pipeline_close(p);
    close(end[0]);
    mr_dataset_unref(d);
}

static pthread_t main_thread;
static volatile sig_atomic_t n_here, n_elsewhere;

static void count_where(int sig)
{
    (void)sig;
    if (pthread_equal(pthread_self(), main_thread))
        n_here++;
    else
        n_elsewhere++;
}

/* A handler may use descriptors that a worker does not have. */
static void workers_leave_signals_to_others(void **state)
{
    struct tempdir *t = *state;
    if (photo_set_engine == MR_ENGINE_URING)
        skip();
    photo_set_write(t, 100);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    struct sigaction act = {.sa_handler = count_where}, was;
    sigset_t usr1, before;
    main_thread = pthread_self();
    n_here = n_elsewhere = 0;
    sigaction(SIGUSR1, &act, &was);
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    for (unsigned i = 0; i < 100; i++) {
        pthread_sigmask(SIG_BLOCK, &usr1, &before);
        kill(getpid(), SIGUSR1); /* for any thread that does not block it: */
        sched_yield();
        pthread_sigmask(SIG_SETMASK, &before, NULL); /* now this one */
    }
    assert_int_equal(n_elsewhere, 0);
    assert_int_equal(n_here, 100);
    sigaction(SIGUSR1, &was, NULL);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

/* Files are opened from the folder that they have in common. */
static void names_with_two_slashes_are_files_of_their_folder(void **state)
{
    struct tempdir *t = *state;
    char list[2 * PATH_MAX], below[PATH_MAX];
    tempdir_text(t, "cat/1", "one");
    tempdir_text(t, "cat/2", "two");
    tempdir_text(t, "3", "not this one");
    snprintf(below, sizeof below, "%s/3", t->path + 1);
    tempdir_text(t, below, "three");
    snprintf(list, sizeof list, "cat/1\ncat//2\n%s/%s/3\n", t->path, t->path);
    tempdir_text(t, "list.csv", list);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "list.csv"));
    struct mr_pipeline_opts o = photo_set_opts();
    struct mr_batch *b;
    o.batch = 3;
    o.on_error_policy = MR_ON_ERROR_FAIL;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    assert_int_equal(mr_pipeline_next(p, &b), 1);
    for (unsigned i = 0; i < 3; i++) {
        static const char *const words[] = {"one", "two", "three"};
        const char *want = words[b->samples[i].index];
        assert_int_equal(b->samples[i].len, strlen(want));
        assert_memory_equal(b->samples[i].data, want, strlen(want));
    }
    mr_batch_unref(b);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

static void a_folder_that_was_replaced_is_found_by_its_name(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 96);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    struct mr_batch *b;
    char from[PATH_MAX], to[PATH_MAX];
    unsigned n = 1;
    int r;
    o.on_error_policy = MR_ON_ERROR_FAIL;
    o.prefetch = MR_NONE;
    struct mr_pipeline *p = photo_set_pipeline(d, &o);
    assert_int_equal(mr_pipeline_next(p, &b), 1);
    mr_batch_unref(b);
    snprintf(from, sizeof from, "%s", tempdir_path(t, "set"));
    snprintf(to, sizeof to, "%s", tempdir_path(t, "old"));
    assert_int_equal(rename(from, to), 0);
    assert_int_equal(mkdir(from, 0755), 0);
    for (uint32_t c = 0; c < mr_dataset_n_classes(d); c++) {
        const char *name = mr_dataset_class_name(d, c);
        snprintf(from, sizeof from, "%s/old/%s", t->path, name);
        snprintf(to, sizeof to, "%s/set/%s", t->path, name);
        assert_int_equal(rename(from, to), 0);
    }
    for (; (r = mr_pipeline_next(p, &b)) == 1; n++)
        mr_batch_unref(b);
    assert_int_equal(r, 0);
    assert_int_equal(n, 6);
    mr_pipeline_close(p);
    mr_dataset_unref(d);
}

/* Hash of all batches of a pipeline that is opened in folder `before` and drawn from in `after`:
 * long enough for a consumer that helps its workers. */
static uint64_t hash_across(struct mr_dataset *d, const struct mr_pipeline_opts *o,
                            const char *before, const char *after)
{
    assert_int_equal(chdir(before), 0);
    struct mr_pipeline *p = photo_set_pipeline(d, o);
    assert_int_equal(chdir(after), 0);
    struct mr_batch *b;
    uint64_t hash = 0;
    for (uint64_t left = mr_pipeline_n_left(p); left;) {
        int r = mr_pipeline_next(p, &b);
        if (r < 0)
            fail_msg("%s", mr_pipeline_error(p));
        if (r != 1)
            continue;
        hash = hash * 31 + photo_set_batch_hash(b);
        mr_batch_unref(b);
        left--;
    }
    mr_pipeline_close(p);
    return hash;
}

struct chdir_case {
    char here[PATH_MAX], elsewhere[PATH_MAX], absolute[PATH_MAX];
    const char *relative;
};

/* Read a data set by relative paths, from other folders than the one it was opened in, with and
 * without a map; what it must have drawn is known from absolute paths. */
static void read_from_elsewhere(const struct chdir_case *c)
{
    struct mr_pipeline_opts o = photo_set_opts();
    struct mr_dataset *absolute = photo_set_open(c->absolute);
    o.epochs = 8;
    o.on_error_policy = MR_ON_ERROR_FAIL;
    for (int with_map = 0; with_map < 2; with_map++) {
        o.map = with_map ? photo_set_number : NULL;
        o.map_bytes = with_map ? 8 : 0;
        uint64_t want = hash_across(absolute, &o, c->here, c->here);
        assert_int_equal(chdir(c->here), 0);
        struct mr_dataset *d = photo_set_open(c->relative);
        assert_true(hash_across(d, &o, c->here, c->elsewhere) == want);
        assert_true(hash_across(d, &o, c->elsewhere, "/") == want);
        mr_dataset_unref(d);
    }
    mr_dataset_unref(absolute);
}

static void make_chdir_case(struct tempdir *t, const char *relative, struct chdir_case *c)
{
    photo_set_write(t, 100);
    /* Names that are right in the wrong folder, too. */
    tempdir_text(t, "elsewhere/set/a/0000.jpg", "another file of the same name");
    tempdir_text(t, "elsewhere/set/b/0001.jpg", "another file of the same name");
    snprintf(c->here, sizeof c->here, "%s", t->path);
    snprintf(c->elsewhere, sizeof c->elsewhere, "%s", tempdir_path(t, "elsewhere"));
    snprintf(c->absolute, sizeof c->absolute, "%s", tempdir_path(t, relative));
    c->relative = relative;
}

/* Run with the working folder as it was afterwards. */
static void with_working_folder(void (*run)(const struct chdir_case *c), const struct chdir_case *c)
{
    int was = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(was >= 0);
    run(c);
    assert_int_equal(fchdir(was), 0);
    close(was);
}

static void a_folder_is_read_whatever_the_working_folder_is(void **state)
{
    struct chdir_case c;
    make_chdir_case(*state, "set", &c);
    with_working_folder(read_from_elsewhere, &c);
}

static void a_list_is_read_whatever_the_working_folder_is(void **state)
{
    struct tempdir *t = *state;
    struct chdir_case c;
    char text[100 * 64], *p = text;
    make_chdir_case(t, "set/list.csv", &c);
    for (unsigned i = 0; i < 100; i++) /* every tenth by its absolute path */
        p += snprintf(p, 64, "%s%s%c/%04u.jpg,%u\n", i % 10 ? "" : t->path, i % 10 ? "" : "/set/",
                      "abc"[i % 3], i, i % 3);
    tempdir_text(t, "set/list.csv", text);
    with_working_folder(read_from_elsewhere, &c);
}

static void read_in_a_child(const struct chdir_case *c)
{
    struct mr_pipeline_opts o = photo_set_opts();
    o.on_error_policy = MR_ON_ERROR_FAIL;
    assert_int_equal(chdir(c->here), 0);
    struct mr_dataset *d = photo_set_open(c->relative);
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        hash_across(d, &o, c->elsewhere, "/"); /* a failure ends the child by cmocka's exit */
        mr_dataset_unref(d);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    hash_across(d, &o, c->elsewhere, "/"); /* the child has closed its own descriptor only */
    mr_dataset_unref(d);
}

static void a_child_process_reads_what_its_parent_opened(void **state)
{
    struct chdir_case c;
    make_chdir_case(*state, "set", &c);
    with_working_folder(read_in_a_child, &c);
}

static int look_at_descriptor(void *ctx, const struct mr_map_input *in, void *slot)
{
    struct stat st;
    return fstat(*(int *)ctx, &st) ? -errno : photo_set_number(NULL, in, slot);
}

static void a_map_may_use_the_descriptors_of_its_process(void **state)
{
    struct tempdir *t = *state;
    photo_set_write(t, 100);
    struct mr_dataset *d = photo_set_open(tempdir_path(t, "set"));
    struct mr_pipeline_opts o = photo_set_opts();
    int fd = dup(0), r;
    o.map = look_at_descriptor;
    o.map_bytes = 8;
    o.map_ctx = &fd;
    o.max_error_share = -1;
    photo_set_hash(d, &o, &r);
    assert_int_equal(r, 0);
    close(fd);
    mr_dataset_unref(d);
}

int main(void)
{
    if (photo_set_choose_engine()) {
        printf("SKIP: io_uring is not available here\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(few_descriptors_slow_a_run_down_but_change_nothing),
        WITH_TEMPDIR(an_open_pipeline_keeps_nothing_else_open),
        WITH_TEMPDIR(a_map_may_use_the_descriptors_of_its_process),
        WITH_TEMPDIR(workers_leave_signals_to_others),
        WITH_TEMPDIR(names_with_two_slashes_are_files_of_their_folder),
        WITH_TEMPDIR(a_folder_that_was_replaced_is_found_by_its_name),
        WITH_TEMPDIR(a_folder_is_read_whatever_the_working_folder_is),
        WITH_TEMPDIR(a_list_is_read_whatever_the_working_folder_is),
        WITH_TEMPDIR(a_child_process_reads_what_its_parent_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
