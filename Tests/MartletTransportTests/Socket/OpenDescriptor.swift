import Glibc

/// Returns whether a number is an open descriptor of this process.
func isOpen(_ descriptor: Int32) -> Bool {
    fcntl(descriptor, F_GETFD) >= 0
}
