/* ckpt_template.h - a checkpoint format to copy from; docs/extending.md explains it. */
#ifndef MR_TEST_CKPT_TEMPLATE_H
#define MR_TEST_CKPT_TEMPLATE_H

#include "ckpt_format.h"

extern const struct mr_ckpt_format template_format;

#endif
