import Glibc

/// Standard input, standard output and standard error at the start of the program.
enum StandardDescriptors {
    /// Opens `/dev/null` on each of the three that is closed.
    ///
    /// Else the next file or socket gets its number: a body would be written into the signal pipe or into another connection.
    /// Input and output are opened for reading, so that output still fails as it does on a closed descriptor; that nobody
    /// reads standard error is not an error.
    ///
    /// Must run before anything else is opened.
    static func open() {
        for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) == -1 {
            // The lowest free number is this one: those below are open by now.
            _ = unsafe Glibc.open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}
