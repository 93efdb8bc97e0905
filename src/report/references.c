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
