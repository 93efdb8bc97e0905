/* alexnet.c - AlexNet as the study trained it: 58,699,238 parameters at 102 classes.
 *
 *     images  [N, 224, 224, 3]
 *     conv1   [N, 56, 56, 96]    11x11, stride 4; ReLU; LRN; pool 3x3/2 -> [N, 27, 27, 96]
 *     conv2   [N, 27, 27, 256]   5x5; ReLU; LRN; pool 3x3/2             -> [N, 13, 13, 256]
 *     conv3   [N, 13, 13, 384]   3x3; ReLU
 *     conv4   [N, 13, 13, 384]   3x3; ReLU
 *     conv5   [N, 13, 13, 256]   3x3; ReLU; pool 3x3/2                  -> [N, 6, 6, 256]
 *     fc1     [N, 4096]          ReLU; dropout 0.5
 *     fc2     [N, 4096]          ReLU; dropout 0.5
 *     output  [N, classes]       logits
 *
 * The names of the variables are those of the study's code, so that its checkpoints fit. */
#include "alexnet.h"

#define CNN(n, letter)       "alexnet_cnn/alexnet_cnn_conv" #n "/" #letter "cnn" #n
#define FC(scope, n, letter) "alexnet_classifier/alexnet_classifier_" #scope "/" #letter "fc" #n
#define CONVOLUTION(n, size, step, channels, start)                                                \
    {                                                                                              \
        .kind = MR_LAYER_CONVOLUTION, .name = "conv" #n, .weights = CNN(n, w), .bias = CNN(n, b),  \
        .n_out = channels, .kernel = size, .stride = step, .bias_init = start                      \
    }
#define RELU(n)                                                                                    \
    {                                                                                              \
        .kind = MR_LAYER_RELU, .name = "relu" #n                                                   \
    }
#define LRN(n)                                                                                     \
    {                                                                                              \
        .kind = MR_LAYER_LRN, .name = "lrn" #n, .radius = 2, .lrn_bias = 1, .alpha = 2e-5f,        \
        .beta = 0.75f                                                                              \
    }
#define POOL(n)                                                                                    \
    {                                                                                              \
        .kind = MR_LAYER_MAX_POOL, .name = "pool" #n, .kernel = 3, .stride = 2                     \
    }
#define DENSE(scope, n, units)                                                                     \
    {                                                                                              \
        .kind = MR_LAYER_DENSE, .name = #scope, .weights = FC(scope, n, w),                        \
        .bias = FC(scope, n, b), .n_out = units                                                    \
    }
#define DROPOUT(n)                                                                                 \
    {                                                                                              \
        .kind = MR_LAYER_DROPOUT, .name = "dropout" #n, .rate = 0.5f                               \
    }

static const struct mr_layer table[] = {
    CONVOLUTION(1, 11, 4, 96, 0), RELU(1), LRN(1),     POOL(1), /* 27 x 27 x 96 */
    CONVOLUTION(2, 5, 1, 256, 1), RELU(2), LRN(2),     POOL(2), /* 13 x 13 x 256 */
    CONVOLUTION(3, 3, 1, 384, 0), RELU(3),                      /* 13 x 13 x 384 */
    CONVOLUTION(4, 3, 1, 384, 1), RELU(4),                      /* 13 x 13 x 384 */
    CONVOLUTION(5, 3, 1, 256, 1), RELU(5), POOL(5),             /* 6 x 6 x 256 */
    DENSE(fc1, 1, 4096),          RELU(6), DROPOUT(1),          /* 4096 */
    DENSE(fc2, 2, 4096),          RELU(7), DROPOUT(2),          /* 4096 */
    DENSE(output, 3, 102),                                      /* classes */
};

void mr_alexnet_init(struct mr_alexnet *a, const struct mr_alexnet_opts *opts)
{
    static const struct mr_alexnet_opts defaults;
    unsigned n = 0;
    if (!opts)
        opts = &defaults;
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].kind == MR_LAYER_LRN && opts->without_lrn)
            continue;
        a->layers[n] = table[i];
        if (table[i].kind == MR_LAYER_CONVOLUTION)
            a->layers[n].plan = opts->plan;
        n++;
    }
    if (opts->n_classes)
        a->layers[n - 1].n_out = opts->n_classes;
    a->spec = (struct mr_net_spec){"alexnet", 224, 224, 3, n, a->layers};
}
