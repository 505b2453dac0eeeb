import Glibc

/// The variables of the process.
package enum ProcessEnvironment {
    /// The value of a variable; `nil` when it is not set, or empty.
    ///
    /// The C library forbids reading while another thread sets one, so this is for the beginnings of things.
    package static func value(of name: String) -> String? {
        guard let value = unsafe getenv(name), unsafe value.pointee != 0 else { return nil }
        return unsafe String(cString: value)
    }
}
