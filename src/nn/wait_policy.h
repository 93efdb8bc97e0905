/* wait_policy.h - keep oneDNN's idle threads from burning the cores that the pipeline needs. */
#ifndef MR_WAIT_POLICY_H
#define MR_WAIT_POLICY_H

/* libgomp reads OMP_WAIT_POLICY before main, so the program sets it to passive and starts itself
 * again, once.  Call at the very beginning of main; does not return when it starts again.  Returns
 * 0 when there is nothing to do (the user has chosen a policy, or this is the second start), else
 * -errno: go on with spinning threads. */
int mr_wait_policy_restart(char **argv);

#endif
