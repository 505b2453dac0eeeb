import SystemPackage
import Testing

/// Limits of the kernel's buffers for connections that are not read.
enum KernelBuffers {
    /// Returns the maximum number of bytes that both sides of a loopback connection hold together: the third values of
    /// `tcp_rmem` and `tcp_wmem`, which limit the growth of the buffers (tcp(7)).
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
