/* net_absent.c - takes the place of net.c and the layers in builds without oneDNN: the parameters
 * and the optimizer exist, a network cannot be opened. */
#include "net.h"

#include "errtext.h"

#include <errno.h>

static int absent(struct mr_error *err)
{
    return mr_fail(err, -ENOTSUP,
                   "this build has no oneDNN: it cannot compute a network; install "
                   "libdnnl-dev and build again, or use an emulated device");
}

int mr_net_available(void)
{
    return 0;
}

int mr_net_open(const struct mr_net_spec *spec, const struct mr_net_opts *opts, struct mr_net **out,
                struct mr_error *err)
{
    (void)spec;
    (void)opts;
    (void)out;
    return absent(err);
}

int mr_net_bytes_needed(const struct mr_net_spec *spec, const struct mr_net_opts *opts,
                        uint64_t *out, struct mr_error *err)
{
    (void)spec;
    (void)opts;
    (void)out;
    return absent(err);
}

int mr_net_forward(struct mr_net *net, const struct mr_net_input *in, struct mr_net_result *out,
                   struct mr_error *err)
{
    (void)net;
    (void)in;
    (void)out;
    return absent(err);
}

int mr_net_backward(struct mr_net *net)
{
    (void)net;
    return -ENOTSUP;
}

int mr_net_update(struct mr_net *net, const struct mr_adam_opts *opts)
{
    (void)net;
    (void)opts;
    return -ENOTSUP;
}

void mr_net_close(struct mr_net *net)
{
    (void)net;
}

struct mr_params *mr_net_params(struct mr_net *net)
{
    (void)net;
    return NULL;
}

struct mr_team *mr_net_team(struct mr_net *net)
{
    (void)net;
    return NULL;
}

unsigned mr_net_threads(const struct mr_net *net)
{
    (void)net;
    return 0;
}

unsigned mr_net_batch(const struct mr_net *net)
{
    (void)net;
    return 0;
}

uint64_t mr_net_bytes(const struct mr_net *net)
{
    (void)net;
    return 0;
}

const float *mr_net_logits(const struct mr_net *net)
{
    (void)net;
    return NULL;
}

unsigned mr_net_n_ops(const struct mr_net *net)
{
    (void)net;
    return 0;
}

void mr_net_op(const struct mr_net *net, unsigned i, struct mr_net_op *out)
{
    (void)net;
    (void)i;
    *out = (struct mr_net_op){0};
}

int mr_net_run_op(struct mr_net *net, unsigned i)
{
    (void)net;
    (void)i;
    return -ENOTSUP;
}
