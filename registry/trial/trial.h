/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules that are new or have changed are opened in another process first, where one
 * that crashes, exits or hangs does no harm. The process is the program strata-trial,
 * started by posix_spawn: a fork of an application with threads must not call dlopen.
 */
#ifndef REGISTRY_TRIAL_TRIAL_H
#define REGISTRY_TRIAL_TRIAL_H

#include "registry/module.h"

#define TRIAL_PROGRAM "strata-trial"
#define TRIAL_TIMEOUT_MS 30000 /* for one module */

/* Try those of the modules that may be loaded and are not known to be good; of one that
 * ends the process, `fault` says how. Nothing is tried without a cache folder, which
 * remembers what is good, or without the program. Only ENOMEM is an error. */
int trial_modules(struct module **modules, size_t n, strata_error *err);

/* The program: opens each file and writes to standard output TRIAL_OPENED when its
 * constructors are done and TRIAL_DONE when its tables are read, good or bad;
 * TRIAL_UNREAD instead where memory or descriptors ran out, so that nothing was tried. */
#define TRIAL_OPENED 'o'
#define TRIAL_DONE 'd'
#define TRIAL_UNREAD 'u'
int trial_main(int argc, char **argv);

#endif /* REGISTRY_TRIAL_TRIAL_H */
