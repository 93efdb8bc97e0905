/* ckpt_formats.c - the table of checkpoint formats; ckpt_format.h says what a row is. */
#include "ckpt_format.h"

static const struct mr_ckpt_format *const rows[] = {
    [MR_CHECKPOINT_TF] = &mr_tf_format,
    [MR_CHECKPOINT_SAFETENSORS] = &mr_safetensors_format,
};

const struct mr_ckpt_format *mr_ckpt_format_row(unsigned i)
{
    return i < sizeof rows / sizeof *rows ? rows[i] : NULL;
}
