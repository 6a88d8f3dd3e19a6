/* SPDX-License-Identifier: Apache-2.0
 *
 * A constructor or entry that calls exit would end the process as if all had gone well,
 * whatever it was about to do. _exit cannot be caught from inside the process.
 */
#ifndef REGISTRY_LOADING_GUARD_H
#define REGISTRY_LOADING_GUARD_H

/* Until guard_arm(NULL), an exit of this thread names the module on the log and ends with
 * status 2. `path` is borrowed. */
void guard_arm(const char *path);
/* The module that this thread is loading, or NULL; may be called in a signal handler. */
const char *guard_loading(void);

#endif /* REGISTRY_LOADING_GUARD_H */
