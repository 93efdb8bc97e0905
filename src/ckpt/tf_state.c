/* tf_state.c - see tf_state.h.  A protocol buffer as text:
 *
 *   model_checkpoint_path: "model.ckpt-100"
 *   all_model_checkpoint_paths: "model.ckpt-80"
 *   all_model_checkpoint_paths: "model.ckpt-100" */
#include "tf_state.h"

static void put_line(struct mr_bytes *out, const char *field, const char *path)
{
    mr_bytes_printf(out, "%s: \"", field);
    for (; *path; path++)
        if (*path == '"' || *path == '\\')
            mr_bytes_printf(out, "\\%c", *path);
        else if ((unsigned char)*path < 0x20 || (unsigned char)*path >= 0x7f)
            mr_bytes_printf(out, "\\%03o", (unsigned char)*path);
        else
            mr_bytes_add(out, path, 1);
    mr_bytes_add_text(out, "\"\n");
}

void mr_tf_state_write(const char *const *names, size_t n, struct mr_bytes *out)
{
    if (n)
        put_line(out, "model_checkpoint_path", names[n - 1]);
    for (size_t i = 0; i < n; i++)
        put_line(out, "all_model_checkpoint_paths", names[i]);
}
