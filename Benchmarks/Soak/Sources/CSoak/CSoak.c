#include "CSoak.h"
