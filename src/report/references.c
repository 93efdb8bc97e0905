/* references.c - see references.h.  What a paper does not say of itself (a year, a DOI) is not made
 * up here. */
#include "references.h"

const struct mr_reference mr_references[MR_N_REFERENCES] = {
    [MR_REF_CHIEN] =
        {"Chien et al. 2018",
         "Steven W. D. Chien, Stefano Markidis, Chaitanya Prasad Sishtla, Luis Santos, "
         "Pawel Herman, Sai Narasimhamurthy, Erwin Laure",
         "Characterizing Deep-Learning I/O Workloads in TensorFlow",
         "IEEE/ACM 3rd International Workshop on Parallel Data Storage & Data "
         "Intensive Scalable Computing Systems (PDSW-DISCS), 2018",
         "DOI 10.1109/PDSW-DISCS.2018.00011, arXiv 1810.03035"},
    [MR_REF_CHOWDHURY] = {"Chowdhury et al.",
                          "Fahim Chowdhury, Jialin Liu, Quincey Koziol, Thorsten Kurth, Steven "
                          "Farrell, Suren Byna, Prabhat, Weikuan Yu",
                          "Initial Characterization of I/O in Large-Scale Deep Learning "
                          "Applications",
                          "Florida State University and Lawrence Berkeley National Laboratory, "
                          "undated (its references end in 2018)",
                          "No DOI; its code is github.com/NERSC/DL-Parallel-IO"},
    [MR_REF_NELSON] = {"Nelson 2022", "Mark Nelson",
                       "An Initial Look at Deep Learning IO Performance",
                       "Mark Nelson's Blog, 28 November 2022",
                       "No DOI; markhpc.github.io/2022/11/28/Lambda.html"},
};

const struct mr_repeated mr_repeated[] = {
    {MR_REF_CHIEN, "Table I", "raw bandwidth of the storages", "baseline", "millrace baseline DIR"},
    {MR_REF_CHIEN, "Figure 4", "reading and decoding over threads", "decode",
     "millrace bench --data DIR --map decode --threads 1,2,4,8 --cold"},
    {MR_REF_CHIEN, "Figure 5", "reading alone over threads", "read",
     "millrace bench --data DIR --map read --threads 1,2,4,8 --cold"},
    {MR_REF_CHIEN, "Figure 6", "training with and without prefetch", "overlap",
     "millrace train --data DIR --device emulated:0.2 --prefetch 0 (and 1)"},
    {MR_REF_CHIEN, "Figure 7", "training over batch sizes", "batch",
     "millrace train --synthetic --batch 128"},
    {MR_REF_CHIEN, "Figures 8 and 10", "the device over time", "activity",
     "millrace watch -- millrace train --data DIR --cold"},
    {MR_REF_CHIEN, "Figure 9", "what checkpoints cost", "checkpoint",
     "millrace train --data DIR --checkpoint FAST --drain SLOW"},
    {MR_REF_CHOWDHURY, "Figure 1", "phases as merged intervals", "phases",
     "millrace train --data DIR --trace FILE, then millrace inspect FILE"},
    {MR_REF_NELSON, "file sizes and requests", "what files look like to the device", "files",
     "millrace inspect DIR"},
};
const unsigned mr_n_repeated = sizeof mr_repeated / sizeof *mr_repeated;
