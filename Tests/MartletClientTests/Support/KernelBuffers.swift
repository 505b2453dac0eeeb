import SystemPackage
import Testing

/// What the kernel may hold of a connection's bytes while nobody reads them.
enum KernelBuffers {
    /// The most that both sides of a connection over loopback hold together, in bytes: the last of the three numbers of
    /// `tcp_rmem` and of `tcp_wmem`, up to which the kernel lets their buffers grow (tcp(7)).
    static func most() throws -> Int {
        try largest("tcp_rmem") + largest("tcp_wmem")
    }

    private static func largest(_ setting: String) throws -> Int {
        let file = try FileDescriptor.open(FilePath("/proc/sys/net/ipv4/\(setting)"), .readOnly)
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = try file.closeAfter {
            unsafe try bytes.withUnsafeMutableBytes { unsafe try file.read(into: $0) }
        }
        let text = String(decoding: bytes.prefix(count), as: UTF8.self)
        return try #require(text.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) })
    }
}
