/* inspect_image.c - see inspect_image.h.  The file is decoded once, as training would do it: that
 * tells whether it is whole, and which decoder takes it. */
#include "inspect_image.h"

#include "buffer.h"
#include "errtext.h"
#include "open_file.h"
#include "output.h"
#include "say.h"
#include "whole_file.h"

#include <millrace/image.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LARGEST ((size_t)1 << 30)

struct finding {
    size_t bytes;
    struct mr_image_info info;
    enum mr_decoder_path by; /* MR_PATH_NONE: by nobody, and why: */
    char error[256];
};

int inspect_is_image(const char *path)
{
    unsigned char head[8] = {0};
    int fd = mr_open_file(path, O_RDONLY | O_NONBLOCK, 0);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head);
    if (fd >= 0)
        close(fd);
    return (n >= 3 && !memcmp(head, "\xff\xd8\xff", 3)) ||
           (n == 8 && !memcmp(head, "\x89PNG\r\n\x1a\n", 8));
}

static int look(const char *path, struct finding *f)
{
    static const struct mr_decoder_opts small = {.width = 1, .height = 1};
    struct mr_buffer file = {0};
    struct mr_decoder *d = NULL;
    struct mr_decoder_stats stats;
    float pixel[3];
    int r = mr_decoder_new(&small, &d, NULL);
    if (!r)
        r = mr_whole_file_load(path, LARGEST, &file, &f->bytes);
    if (!r) {
        if (mr_decoder_probe(d, file.data, f->bytes, &f->info) ||
            mr_decoder_run(d, file.data, f->bytes, 0, pixel))
            snprintf(f->error, sizeof f->error, "%s", mr_decoder_error(d));
        mr_decoder_get_stats(d, &stats);
        f->by = f->error[0] ? MR_PATH_NONE : (enum mr_decoder_path)stats.path;
    }
    mr_decoder_free(d);
    mr_buffer_fini(&file);
    return r;
}

static const char *colours(const struct mr_image_info *i)
{
    static const char *const of_jpeg[] = {"", "grey", "two components", "colour", "CMYK"};
    static const char *const of_png[] = {"", "grey or palette", "grey and alpha", "colour",
                                         "colour and alpha"};
    unsigned n = i->components < 5 ? i->components : 0;
    return i->format == MR_IMAGE_PNG ? of_png[n] : of_jpeg[n];
}

static void print(const char *path, const struct finding *f)
{
    static const char *const decoders[MR_N_PATHS] = {[MR_PATH_OWN] = "our own decoder",
                                                     [MR_PATH_TURBO] = "libjpeg-turbo",
                                                     [MR_PATH_PNG] = "the PNG decoder"};
    const struct mr_image_info *i = &f->info;
    int png = i->format == MR_IMAGE_PNG;
    char bytes[32];
    say("%s: ", path);
    if (i->format)
        say("%s image, %u x %u, %s%s%s, %u bits a component, %s, ", png ? "PNG" : "JPEG", i->width,
            i->height, colours(i), i->sampling[0] ? " " : "", i->sampling, i->bits,
            png ? (i->progressive ? "interlaced" : "not interlaced")
                : (i->progressive ? "progressive" : "baseline"));
    say("%s\n", human_bytes((double)f->bytes, bytes, sizeof bytes));
    if (f->by == MR_PATH_NONE)
        say("broken: %s\n", f->error);
    else
        say("decoded by %s\n", decoders[f->by]);
}

static struct mr_json *to_json(const char *path, const struct finding *f)
{
    static const char *const names[MR_N_PATHS] = {
        [MR_PATH_OWN] = "own", [MR_PATH_TURBO] = "turbo", [MR_PATH_PNG] = "png"};
    const struct mr_image_info *i = &f->info;
    struct mr_json *o = mr_json_object();
    int known = i->format != 0;
    mr_json_set(o, "path", mr_json_string(path));
    mr_json_set(o, "kind", mr_json_string("image"));
    mr_json_set(o, "format",
                !known ? mr_json_null()
                       : mr_json_string(i->format == MR_IMAGE_PNG ? "png" : "jpeg"));
    mr_json_set(o, "bytes", mr_json_int((int64_t)f->bytes));
    mr_json_set(o, "width", known ? mr_json_int(i->width) : mr_json_null());
    mr_json_set(o, "height", known ? mr_json_int(i->height) : mr_json_null());
    mr_json_set(o, "components", known ? mr_json_int(i->components) : mr_json_null());
    mr_json_set(o, "bits", known ? mr_json_int(i->bits) : mr_json_null());
    mr_json_set(o, "progressive", known ? mr_json_bool(i->progressive) : mr_json_null());
    mr_json_set(o, "sampling", mr_json_string(i->sampling[0] ? i->sampling : NULL));
    mr_json_set(o, "decoded_by", mr_json_string(names[f->by]));
    mr_json_set(o, "error", mr_json_string(f->error[0] ? f->error : NULL));
    return o;
}

int inspect_image(const struct options *o)
{
    struct finding f = {0};
    struct output out;
    const char *path = o->paths[0];
    if (output_open(o, &out))
        return 1;
    int r = look(path, &f);
    if (r) {
        say_to(stderr, "millrace inspect: %s: %s\n", path, mr_errno_text(r));
        return 1;
    }
    if (!out.quiet)
        print(path, &f);
    struct mr_json *results = mr_json_array();
    mr_json_append(results, to_json(path, &f));
    int failed = output_json(&out, o, path, results);
    return failed || (o->check && f.by == MR_PATH_NONE);
}
