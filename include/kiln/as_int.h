/* typedef enum KILN_AS_INT name {...}: an enumeration of int's size, also under -fshort-enums. So structs and calls fit a library
 * that was compiled without that option. */
#ifndef KILN_AS_INT_H
#define KILN_AS_INT_H

#if defined __GNUC__
#define KILN_AS_INT __attribute__((mode(SI)))
#else
#define KILN_AS_INT
#endif

#endif
