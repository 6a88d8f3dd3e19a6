/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of the application itself: the tables of a module, given to a registry without a
 * file. For prototypes, tests and other languages; Python's @strata.layer stands on it.
 */
#ifndef STRATA_MODULE_H
#define STRATA_MODULE_H

#include <strata/strata.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Take in a module as a plugin's entry would give it; it may define layers and extend
 * others. Before networks and engines that need it are loaded: a layer that was looked up
 * already keeps the impls that it has.
 *
 * `name` is what messages and engine files call it, "memory:NAME": 1 to 100 printable
 * characters, no '/', and no other module of the registry has it. The tables are
 * validated as those of a file, EMODULE says what is wrong, and copied; texts and
 * functions are not: they must stay as they are until the registry is destroyed.
 * Callbacks keep the rules of strata/plugin.h; what they are called with holds `host`.
 *
 * Files win. A layer that a plugin file has, under the same namespace and name, is the
 * file's; a name that a network writes without its namespace is a file's, too, where one
 * has it in any. Both are said in a warning, here or where the file is added later. An
 * engine that was built with such a layer says which module it lacks where it is loaded
 * without. */
STRATA_API int strata_registry_add(strata_registry *registry, const char *name,
                                   const strata_module *module, strata_error *err);

#ifdef __cplusplus
}
#endif

#endif /* STRATA_MODULE_H */
