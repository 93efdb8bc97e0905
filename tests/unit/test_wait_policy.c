/* The program starts itself again once, with passive waiting; never twice; never against the user.
 *
 * Run with an argument it is the child: its exit status tells what it found. */
#include "unit.h"

#include "wait_policy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PASSIVE = 10, USERS_OWN = 11, ODD = 12 };

static int child_main(char **argv)
{
    if (mr_wait_policy_restart(argv))
        return ODD;
    const char *policy = getenv("OMP_WAIT_POLICY");
    if (!policy || getenv("MILLRACE_RESTARTED") || strcmp(argv[1], "child") || argv[2])
        return ODD;
    return strcmp(policy, "passive") ? USERS_OWN : PASSIVE;
}

static int run_child(const char *policy)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        unsetenv("OMP_WAIT_POLICY");
        if (policy)
            setenv("OMP_WAIT_POLICY", policy, 1);
        execl("/proc/self/exe", "test", "child", (char *)NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void it_waits_passively_after_one_restart(void **state)
{
    (void)state;
    assert_int_equal(run_child(NULL), PASSIVE);
}

static void the_users_policy_stays(void **state)
{
    (void)state;
    assert_int_equal(run_child("active"), USERS_OWN);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_waits_passively_after_one_restart),
        cmocka_unit_test(the_users_policy_stays),
    };
    if (argc > 1)
        return child_main(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
