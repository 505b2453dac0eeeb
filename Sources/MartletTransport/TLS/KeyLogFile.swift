import Glibc

/// The file that connections' secrets are appended to, in the NSS key log format.
final class KeyLogFile: Sendable {
    private let descriptor: Int32

    /// Opens the file for appending, or makes it with mode 0600.
    init(path: String) throws(SystemError) {
        descriptor = unsafe open(
            path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else { throw SystemError(operation: "open", code: errno) }
        // Writing to a pipe that nobody reads would end the process with SIGPIPE.
        var status = stat()
        let kind = unsafe fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : 0
        guard kind == S_IFREG || kind == S_IFCHR else {
            close(descriptor)
            throw SystemError(operation: "open", code: EINVAL)
        }
    }

    deinit {
        close(descriptor)
    }

    /// Appends a line in one call, so that lines of several processes do not mix. A full disk costs the line
    /// alone.
    func append(_ line: String) {
        let bytes = Array(line.utf8) + [UInt8(ascii: "\n")]
        _ = Socket.retrying { unsafe write(descriptor, bytes, bytes.count) }
    }
}
