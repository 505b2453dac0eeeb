import Foundation

/// The listening sockets of this machine, from the kernel's table.
///
/// A server is ready when its ports are in it. A test connection would use up a connection of servers that accept only
/// one, or one at a time.
enum ListeningSockets {
    /// The TCP ports over IPv4 that have a listener.
    static func ports() throws -> Set<UInt16> {
        let table = try String(contentsOfFile: "/proc/net/tcp", encoding: .ascii)
        let listening = "0A"
        let ports = table.split(separator: "\n").dropFirst().compactMap { line -> UInt16? in
            let columns = line.split(separator: " ")
            guard columns.count > 3, columns[3] == listening else { return nil }
            return UInt16(columns[1].suffix(4), radix: 16)
        }
        return Set(ports)
    }
}
