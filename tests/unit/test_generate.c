/* test_generate.c - generated sets: the same bytes every time, a list that tells the truth, and
 * nothing half done left behind.
 *
 * The linker leads the library's calls that can fail through __wrap_ functions here: the n-th of
 * them fails when `fail_at` is n. */
#include "generate.h"

#include <millrace/dataset.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

static atomic_int n_calls, fail_at;  /* 0 = nothing fails */
static atomic_int full_disk_at_byte; /* 0 = there is room */

static int fails(void)
{
    return fail_at && atomic_fetch_add(&n_calls, 1) + 1 == fail_at;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

void *__real_mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
    if (!fails())
        return __real_mmap64(at, size, prot, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (!fails())
        return __real_open64(path, flags, mode);
    errno = EMFILE;
    return -1;
}

ssize_t __real_write(int fd, const void *buf, size_t n);
ssize_t __wrap_write(int fd, const void *buf, size_t n);
ssize_t __wrap_write(int fd, const void *buf, size_t n)
{
    int room = full_disk_at_byte;
    if (room == 1 || fails()) {
        errno = ENOSPC;
        return -1;
    }
    if (room > 1 && n >= (size_t)room) { /* what is left, then nothing */
        n = (size_t)room - 1;
        full_disk_at_byte = 1;
        return n ? __real_write(fd, buf, n) : __wrap_write(fd, buf, 1);
    }
    if (room > 1)
        full_disk_at_byte = room - (int)n;
    return __real_write(fd, buf, n);
}

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    if (!fails())
        return __real_fdatasync(fd);
    errno = EIO;
    return -1;
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    if (!fails())
        return __real_mkdir(path, mode);
    errno = ENOSPC;
    return -1;
}

int __real_openat64(int at, const char *path, int flags, ...);
int __wrap_openat64(int at, const char *path, int flags, ...);
int __wrap_openat64(int at, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (!fails())
        return __real_openat64(at, path, flags, mode);
    errno = EMFILE;
    return -1;
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    if (!fails())
        return __real_fsync(fd);
    errno = EIO;
    return -1;
}

int __real_renameat(int from_at, const char *from, int to_at, const char *to);
int __wrap_renameat(int from_at, const char *from, int to_at, const char *to);
int __wrap_renameat(int from_at, const char *from, int to_at, const char *to)
{
    if (!fails())
        return __real_renameat(from_at, from, to_at, to);
    errno = EIO;
    return -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void remove_tree(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int set_up(void **state)
{
    char *dir = strdup("/tmp/millrace-test-XXXXXX");
    *state = dir && mkdtemp(dir) ? dir : NULL;
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    fail_at = full_disk_at_byte = 0;
    remove_tree(*state);
    free(*state);
    return 0;
}

static char *in(const char *dir, const char *name)
{
    static char buf[4][PATH_MAX];
    static unsigned next;
    char *path = buf[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", dir, name);
    return path;
}

static int exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static size_t slurp(const char *path, uint8_t **bytes)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    *bytes = malloc((size_t)st.st_size + 1);
    assert_non_null(*bytes);
    assert_int_equal(fread(*bytes, 1, (size_t)st.st_size, f), st.st_size);
    (*bytes)[st.st_size] = 0;
    fclose(f);
    return (size_t)st.st_size;
}

static int same_file(const char *a, const char *b)
{
    uint8_t *x, *y;
    size_t n = slurp(a, &x), m = slurp(b, &y);
    int same = n == m && !memcmp(x, y, n);
    free(x);
    free(y);
    return same;
}

static const char *image_name(uint64_t index, uint32_t classes)
{
    static char name[64];
    snprintf(name, sizeof name, "class_%04u/%08llu.jpg", (unsigned)(index % classes),
             (unsigned long long)index);
    return name;
}

static void generate(const char *dir, uint64_t count, uint32_t classes, uint64_t seed,
                     unsigned threads)
{
    struct mr_error err = {0};
    struct mr_generate_opts o = {.preset = MR_PRESET_CALTECH101,
                                 .count = count,
                                 .classes = classes,
                                 .seed = seed,
                                 .threads = threads};
    assert_int_equal(mr_generate(dir, &o, NULL, &err), 0);
}

static void the_bytes_do_not_depend_on_the_number_of_threads(void **state)
{
    char *one = strdup(in(*state, "one")), *three = strdup(in(*state, "three"));
    generate(one, 30, 4, 7, 1);
    generate(three, 30, 4, 7, 3);
    for (uint64_t i = 0; i < 30; i++)
        assert_true(same_file(in(one, image_name(i, 4)), in(three, image_name(i, 4))));
    assert_true(same_file(in(one, "list.csv"), in(three, "list.csv")));
    free(one);
    free(three);
}

static void a_small_set_is_the_beginning_of_a_large_one(void **state)
{
    char *small = strdup(in(*state, "small")), *large = strdup(in(*state, "large"));
    generate(small, 8, 4, 7, 2);
    generate(large, 16, 4, 7, 2);
    for (uint64_t i = 0; i < 8; i++)
        assert_true(same_file(in(small, image_name(i, 4)), in(large, image_name(i, 4))));
    free(small);
    free(large);
}

static void another_seed_and_every_number_gives_another_image(void **state)
{
    char *one = strdup(in(*state, "one")), *two = strdup(in(*state, "two"));
    generate(one, 8, 1, 1, 2);
    generate(two, 8, 1, 2, 2);
    for (uint64_t i = 0; i < 8; i++) {
        char *here = strdup(in(one, image_name(i, 1)));
        assert_false(same_file(here, in(two, image_name(i, 1))));
        for (uint64_t k = 0; k < i; k++)
            assert_false(same_file(here, in(one, image_name(k, 1))));
        free(here);
    }
    free(one);
    free(two);
}

static void the_list_and_the_folders_name_the_same_images_and_labels(void **state)
{
    struct mr_dataset *list = NULL, *tree = NULL;
    struct mr_error err = {0};
    char path[PATH_MAX];
    generate(*state, 11, 3, 5, 2);
    assert_int_equal(mr_dataset_open(in(*state, "list.csv"), &list, &err), 0);
    assert_int_equal(mr_dataset_open(*state, &tree, &err), 0);
    assert_int_equal(mr_dataset_size(list), 11);
    assert_int_equal(mr_dataset_size(tree), 11);
    assert_int_equal(mr_dataset_n_classes(tree), 3);
    for (uint64_t i = 0; i < 11; i++) {
        assert_true(mr_dataset_name(list, i, path, sizeof path) > 0);
        assert_string_equal(path, in(*state, image_name(i, 3)));
        assert_true(exists(path));
        assert_int_equal(mr_dataset_label(list, i), i % 3);
    }
    for (uint64_t i = 0, n[3] = {0}; i < 11; i++) { /* the tree is sorted by class */
        uint32_t label = mr_dataset_label(tree, i);
        uint64_t number = 3 * n[label]++ + label;
        assert_true(mr_dataset_name(tree, i, path, sizeof path) > 0);
        assert_string_equal(path, in(*state, image_name(number, 3)));
    }
    mr_dataset_unref(list);
    mr_dataset_unref(tree);
}

static void the_result_counts_images_and_bytes(void **state)
{
    struct mr_generate_opts o = {.preset = MR_PRESET_CALTECH101, .count = 5, .seed = 3};
    struct mr_generate_result made;
    struct stat st;
    uint64_t bytes = 0;
    assert_int_equal(mr_generate(*state, &o, &made, NULL), 0);
    for (uint64_t i = 0; i < 5; i++) { /* as many classes as images, since 102 do not fit */
        assert_int_equal(stat(in(*state, image_name(i, 5)), &st), 0);
        bytes += (uint64_t)st.st_size;
    }
    assert_int_equal(made.n_images, 5);
    assert_int_equal(made.n_bytes, bytes);
}

static int stop_after(void *arg, uint64_t n_done, uint64_t n_all)
{
    (void)n_all;
    return n_done >= *(uint64_t *)arg;
}

static void a_stopped_job_lists_exactly_what_exists(void **state)
{
    uint64_t enough = 2, n = 0;
    struct mr_error err = {0};
    struct mr_generate_opts o = {.preset = MR_PRESET_CALTECH101,
                                 .count = 100000,
                                 .classes = 2,
                                 .threads = 2,
                                 .progress = stop_after,
                                 .arg = &enough};
    struct mr_generate_result made;
    struct mr_dataset *list = NULL, *tree = NULL;
    assert_int_equal(mr_generate(*state, &o, &made, &err), -ECANCELED);
    assert_int_equal(mr_dataset_open(in(*state, "list.csv"), &list, &err), 0);
    assert_int_equal(mr_dataset_open(*state, &tree, &err), 0);
    n = mr_dataset_size(list);
    assert_in_range(n, 2, 99999);
    assert_int_equal(mr_dataset_size(tree), n);
    assert_int_equal(made.n_images, n);
    for (uint64_t i = 0; i < n; i++)
        assert_true(exists(in(*state, image_name(i, 2))));
    mr_dataset_unref(list);
    mr_dataset_unref(tree);
}

static void it_can_be_stopped_while_files_are_written_out(void **state)
{
    uint64_t all = 5;
    struct mr_generate_opts o = {
        .preset = MR_PRESET_CALTECH101, .count = all, .progress = stop_after, .arg = &all};
    struct mr_generate_result made;
    struct mr_dataset *list = NULL;
    assert_int_equal(mr_generate(*state, &o, &made, NULL), -ECANCELED);
    assert_int_equal(made.n_images, all);
    assert_int_equal(mr_dataset_open(in(*state, "list.csv"), &list, NULL), 0);
    assert_int_equal(mr_dataset_size(list), all);
    mr_dataset_unref(list);
}

/* Where the parts of a file lie: 0 when all of them are settled. */
static unsigned unsettled(const char *path)
{
    union {
        struct fiemap head;
        char room[sizeof(struct fiemap) + 64 * sizeof(struct fiemap_extent)];
    } map = {.head = {.fm_length = FIEMAP_MAX_OFFSET, .fm_extent_count = 64}};
    unsigned n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (ioctl(fd, FS_IOC_FIEMAP, &map))
        skip();
    close(fd);
    assert_in_range(map.head.fm_mapped_extents, 1, 64);
    for (unsigned i = 0; i < map.head.fm_mapped_extents; i++)
        n += (map.head.fm_extents[i].fe_flags & (FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNKNOWN)) !=
             0;
    return n;
}

static void it_is_settled_where_the_files_lie(void **state)
{
    struct statfs fs;
    assert_int_equal(statfs(*state, &fs), 0);
    if (fs.f_type != EXT4_SUPER_MAGIC)
        skip(); /* others have nothing to settle, or do not tell */
    generate(*state, 40, 4, 7, 2);
    for (uint64_t i = 0; i < 40; i++)
        assert_int_equal(unsettled(in(*state, image_name(i, 4))), 0);
}

static int note_count_and_stop(void *arg, uint64_t n_done, uint64_t n_all)
{
    (void)n_done;
    *(uint64_t *)arg = n_all;
    return 1;
}

static void no_count_means_as_many_as_the_real_set_has(void **state)
{
    uint64_t count = 0;
    struct mr_generate_opts o = {
        .preset = MR_PRESET_CALTECH101, .progress = note_count_and_stop, .arg = &count};
    assert_int_equal(mr_generate(*state, &o, NULL, NULL), -ECANCELED);
    assert_int_equal(count, 9144);
    assert_true(exists(in(*state, "class_0101")));
    assert_false(exists(in(*state, "class_0102")));
}

static void refuse(const char *dir, struct mr_generate_opts o, int code, const char *text)
{
    struct mr_error err = {0};
    assert_int_equal(mr_generate(dir, &o, NULL, &err), code);
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.text, text));
}

static void impossible_requests_are_refused_in_words(void **state)
{
    struct mr_generate_opts o = {.count = 4, .classes = 5};
    char *file = strdup(in(*state, "file")), *below = strdup(in(*state, "file/set"));
    fclose(fopen(file, "w"));
    refuse(in(*state, "set"), o, -EINVAL, "5 classes");
    assert_false(exists(in(*state, "set")));
    o.classes = 1;
    refuse(file, o, -ENOTDIR, file);
    refuse(below, o, -ENOTDIR, below);
    refuse(in(*state, "no/such/parent"), o, -ENOENT, "no/such/parent");
    o.preset = (enum mr_preset)7;
    refuse(in(*state, "set"), o, -EINVAL, "preset 7");
    free(file);
    free(below);
}

static void a_full_disk_names_the_file_and_leaves_no_part_of_it(void **state)
{
    struct mr_error err = {0};
    struct mr_generate_opts o = {
        .preset = MR_PRESET_CALTECH101, .count = 50, .classes = 1, .threads = 1};
    struct mr_dataset *tree = NULL;
    uint64_t n;
    generate(*state, 3, 1, 7, 1); /* an earlier set, with its list */
    o.again = 1;
    full_disk_at_byte = 60000;
    assert_int_equal(mr_generate(*state, &o, NULL, &err), -ENOSPC);
    full_disk_at_byte = 0;
    assert_int_equal(mr_dataset_open(*state, &tree, NULL), 0);
    n = mr_dataset_size(tree);
    assert_in_range(n, 1, 49);
    assert_non_null(strstr(err.text, image_name(n, 1)));
    assert_false(exists(in(*state, image_name(n, 1))));
    assert_false(exists(in(*state, "list.csv")));
    mr_dataset_unref(tree);
}

/* Files that should have got another name. */
static unsigned n_temporary(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    unsigned n = 0;
    while (d && (e = readdir(d)))
        n += strstr(e->d_name, ".part") != NULL;
    if (d)
        closedir(d);
    return n;
}

static void a_set_is_replaced_only_when_that_is_asked_for(void **state)
{
    struct mr_generate_opts o = {
        .preset = MR_PRESET_CALTECH101, .count = 3, .classes = 1, .threads = 1};
    struct mr_dataset *tree = NULL;
    generate(*state, 8, 2, 7, 2);
    refuse(*state, o, -EEXIST, "8 images");
    o.again = 1;
    assert_int_equal(mr_generate(*state, &o, NULL, NULL), 0);
    assert_int_equal(mr_dataset_open(*state, &tree, NULL), 0);
    assert_int_equal(mr_dataset_size(tree), 3);
    mr_dataset_unref(tree);
    fclose(fopen(in(*state, "class_0000/mine.jpg"), "w"));
    refuse(*state, o, -ENOTEMPTY, "class_0000/mine.jpg");
    assert_true(exists(in(*state, "list.csv")));
}

static void every_failing_call_is_reported_and_leaves_no_list(void **state)
{
    struct mr_generate_opts o = {
        .preset = MR_PRESET_CALTECH101, .count = 2, .classes = 2, .threads = 1};
    int r = -1, n;
    for (n = 1; r && n < 1000; n++) {
        struct mr_error err = {0};
        struct mr_generate_result made = {77, 77};
        char *dir = strdup(in(*state, "set"));
        n_calls = 0;
        fail_at = n;
        r = mr_generate(dir, &o, &made, &err);
        fail_at = 0;
        assert_int_equal(err.code, r);
        assert_int_equal(exists(in(dir, "list.csv")), !r);
        assert_int_equal(n_temporary(dir), 0);
        if (r) {
            assert_int_equal(made.n_images, 77);
            assert_true(err.text[0]);
        }
        remove_tree(dir);
        free(dir);
    }
    assert_int_equal(r, 0);
    print_message("%d calls can fail\n", n - 2);
    assert_in_range(n, 15, 999);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_bytes_do_not_depend_on_the_number_of_threads),
        TEST(a_small_set_is_the_beginning_of_a_large_one),
        TEST(another_seed_and_every_number_gives_another_image),
        TEST(the_list_and_the_folders_name_the_same_images_and_labels),
        TEST(the_result_counts_images_and_bytes),
        TEST(a_stopped_job_lists_exactly_what_exists),
        TEST(it_can_be_stopped_while_files_are_written_out),
        TEST(it_is_settled_where_the_files_lie),
        TEST(no_count_means_as_many_as_the_real_set_has),
        TEST(impossible_requests_are_refused_in_words),
        TEST(a_full_disk_names_the_file_and_leaves_no_part_of_it),
        TEST(a_set_is_replaced_only_when_that_is_asked_for),
        TEST(every_failing_call_is_reported_and_leaves_no_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
