import Glibc

/// The file that connections' secrets are appended to, in the NSS key log format.
package final class KeyLogFile: Sendable {
    private let descriptor: Int32

    /// Opens the file for appending, or makes it with mode 0600.
    init(path: String) throws(SystemError) {
        let opened = unsafe open(
            path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0o600)
        guard opened >= 0 else { throw SystemError(operation: "open", code: errno) }
        // Writing to a pipe that nobody reads would end the process with SIGPIPE.
        var status = stat()
        let kind = unsafe fstat(opened, &status) == 0 ? status.st_mode & S_IFMT : 0
        guard kind == S_IFREG || kind == S_IFCHR else {
            close(opened)
            throw SystemError(operation: "open", code: EINVAL)
        }
        descriptor = opened
    }

    /// Why a file cannot be appended to; `nil` where it can. Makes it where there is none.
    package static func fault(at path: String) -> SystemError? {
        do throws(SystemError) {
            _ = try KeyLogFile(path: path)
            return nil
        } catch {
            return error
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
