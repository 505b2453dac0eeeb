import COpenSSL
import Glibc

/// Files that are read as a whole: certificates, keys, lists of suffixes, the hosts file.
enum SystemFile {
    /// The identity and the state of a file: it is read again after they have changed.
    struct Version: Hashable {
        private let numbers: [Int]

        /// The version of a regular file; `nil` for anything else.
        init?(of path: String) {
            var status = stat()
            guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
            let times = [status.st_mtim, status.st_ctim].flatMap { [Int($0.tv_sec), Int($0.tv_nsec)] }
            let (device, inode) = (
                Int(truncatingIfNeeded: status.st_dev), Int(truncatingIfNeeded: status.st_ino)
            )
            numbers = [device, inode, Int(status.st_size)] + times
        }
    }

    /// The bytes of a file. Blocks.
    /// - Parameters:
    ///   - limit: The maximum number of bytes, so that a path such as `/dev/zero` cannot fill the memory.
    ///   - flags: Further flags of `open`.
    static func contents(of path: String, limit: Int, flags: Int32 = 0) throws(SystemError) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | flags)
        guard descriptor >= 0 else { throw SystemError(operation: "open", code: errno) }
        defer { close(descriptor) }
        var contents: [UInt8] = []
        // Enough for a private key, so that no copy of it stays in freed memory.
        contents.reserveCapacity(64 << 10)
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        defer { unsafe chunk.withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) } }
        while true {
            let (count, code) = Socket.retrying {
                unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
            }
            if count < 0 { throw SystemError(operation: "read", code: code) }
            if count == 0 { return contents }
            contents += chunk[..<count]
            if contents.count > limit { throw SystemError(operation: "read", code: EFBIG) }
        }
    }
}
