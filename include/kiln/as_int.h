/* typedef enum KILN_AS_INT name {...} has the size of int even under -fshort-enums, so structs and calls match a
 * library compiled without that option. */
#ifndef KILN_AS_INT_H
#define KILN_AS_INT_H

#if defined __GNUC__
#define KILN_AS_INT __attribute__((mode(SI)))
#else
#define KILN_AS_INT
#endif

#endif
