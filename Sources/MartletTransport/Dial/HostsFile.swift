import Glibc
import Synchronization

/// The names that the system's hosts file contains (hosts(5)).
///
/// They decide how a look-up is scheduled, never its result: addresses come from `getaddrinfo`, which also
/// heeds nsswitch.conf. A file that is wrong, missing or too large therefore costs at most a place in a
/// queue.
final class HostsFile: Sendable {
    /// `/etc/hosts`.
    static let system = HostsFile(path: "/etc/hosts")

    /// The maximum size of a file that is read. Lists of blocked hosts can have several megabytes; their
    /// names are then scheduled like all others.
    static let byteLimit = 1 << 20

    private struct Version: Equatable {
        let device: UInt
        let inode: UInt
        let size: Int
        let modified: [Int]

        init(_ status: stat) {
            device = UInt(status.st_dev)
            inode = UInt(status.st_ino)
            size = Int(status.st_size)
            modified = [status.st_mtim, status.st_ctim].flatMap { [Int($0.tv_sec), Int($0.tv_nsec)] }
        }
    }

    private let path: String
    /// The names of the version that was read last.
    private let state = Mutex<(version: Version?, names: Set<String>)>((nil, []))

    init(path: String) {
        self.path = path
    }

    /// Whether the file contains a name, given in lowercase. The file is read again after it has changed.
    func contains(_ name: String) -> Bool {
        var status = stat()
        let isFile = unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        let version = isFile ? Version(status) : nil
        return state.withLock { state in
            if state.version != version {
                state = (version, version == nil ? [] : HostsFile.names(in: read()))
            }
            return state.names.contains(name)
        }
    }

    /// The bytes of the file; none if it cannot be read or is too large.
    private func read() -> [UInt8] {
        // Between stat and open the path may become a pipe, hence O_NONBLOCK.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        var count = 0
        while true {
            let (received, _) = unsafe bytes.withUnsafeMutableBytes { buffer in
                Socket.retrying {
                    unsafe Glibc.read(
                        descriptor, buffer.baseAddress?.advanced(by: count), buffer.count - count)
                }
            }
            guard received > 0 else { break }
            count += received
            guard count <= HostsFile.byteLimit else { return [] }
            if count == bytes.count { bytes += [UInt8](repeating: 0, count: bytes.count) }
        }
        return Array(bytes[..<count])
    }

    /// The names in the text of a hosts file, in lowercase. Lines that do not begin with an address are
    /// ignored.
    static func names(in bytes: [UInt8]) -> Set<String> {
        var names: Set<String> = []
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let content = line.prefix { $0 != UInt8(ascii: "#") }
            // The characters of isspace.
            let words = content.split { $0 == 0x20 || (0x09...0x0D).contains($0) }
            guard let address = words.first, address.allSatisfy(isPartOfAddress) else { continue }
            for word in words.dropFirst() where word.count <= SystemResolver.nameLimit {
                names.insert(String(decoding: word, as: UTF8.self).lowercased())
            }
        }
        return names
    }

    private static func isPartOfAddress(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"), UInt8(ascii: "."), UInt8(ascii: ":"):
            true
        default: false
        }
    }
}
