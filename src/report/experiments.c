/* experiments.c - the experiments in the order of the page, with what the studies found. */
#include "view_parts.h"

const struct mr_experiment mr_experiments[] = {
    {"verdict", "Verdict and sizing", "Verdict",
     "What limits training here, what should change, what would it gain, and how many accelerators "
     "can this machine feed?",
     "The original study found input hidden behind training once one batch was prefetched, and "
     "1.0 to 1.3 GB/s to be enough for eight V100.",
     MR_ORIGIN_PREDICTED, mr_show_verdict},
    {"baseline", "Raw limits", "Limits", "What can the storage do, without any pipeline?",
     "HDD 163 / 133 MB/s (read / write), SSD 281 / 195, Optane 1603 / 512, Lustre 1969 / 992.",
     MR_ORIGIN_CALIBRATED, mr_show_baseline},
    {"read", "Reading files", "Read", "How much of that does reading whole files reach?",
     "From 1 to 2, 4, 8 threads an HDD gains 1.65, 1.95, 2.3 times, Lustre 7.8 times at 8; SSD and "
     "Optane nearly double from 1 to 2.",
     MR_ORIGIN_CALIBRATED, mr_show_read},
    {"decode", "Decoding", "Decode", "What is left when images are decoded and resized?",
     "The pipeline with decoding stayed far below the device's bandwidth: the CPU was the limit. "
     "In "
     "a later profile 51% of the cycles were decoding and 14% resizing.",
     MR_ORIGIN_PREDICTED, mr_show_decode},
    {"overlap", "Training with input", "Overlap", "Does training wait for input?",
     "With one batch of prefetch the run time is the same on every storage with any number of "
     "threads; without, the cost of input appears and shrinks with more threads.",
     MR_ORIGIN_PREDICTED, mr_show_overlap},
    {"batch", "Batch size", "Batch", "What does an image cost in batches of different sizes?",
     "Larger batches cost less time an image.", MR_ORIGIN_PREDICTED, mr_show_batch},
    {"activity", "Activity over time", "Activity", "When is the device busy?",
     "Reading from the HDD came at intervals without prefetch; with it these were closer together "
     "and "
     "more was read in each. From the SSD the difference was small. Draining the burst buffer went "
     "on "
     "after the end of training.",
     MR_ORIGIN_PREDICTED, mr_show_activity},
    {"checkpoint", "Checkpoints", "Checkpoints", "What does training pay for checkpoints?",
     "About 15% of the run when written directly; a burst buffer made them 2.6 times cheaper than "
     "writing to the HDD.",
     MR_ORIGIN_PREDICTED, mr_show_checkpoint},
    {"phases", "Phases", "Phases", "How much of reading is hidden behind training?",
     "Reading took 1.4 to 15% of the training time on 64 to 1,024 nodes; global shuffling made it "
     "2.1 to 2.5 times as long on up to 512 nodes, and on 1,024 hardly longer (1.49 against "
     "1.44%).",
     MR_ORIGIN_PREDICTED, mr_show_phases},
    {"files", "Files and requests", "Files", "What do the files look like to the device?",
     "80% of ImageNet's files are in the 64 and 128 KB bins; requests of 113 KB, queues of 431 to "
     "810.",
     MR_ORIGIN_PREDICTED, mr_show_files},
};
const unsigned mr_n_experiments = sizeof mr_experiments / sizeof *mr_experiments;
