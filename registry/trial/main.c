/* SPDX-License-Identifier: Apache-2.0
 *
 * The program strata-trial: opens plugin files for a process that must not end with them.
 */
#include "registry/trial/trial.h"

int main(int argc, char **argv)
{
    return trial_main(argc, argv);
}
