import Glibc
import Synchronization

/// Assigns TCP ports of 127.0.0.1 that have no listener.
///
/// They are random ports below the range of Linux's ephemeral ports (32768 and up), so that no other connection or
/// listener of this process can take one before its server has it; and each is assigned only once. Another process may
/// still take it first: a server that does not start is started again with other ports.
enum FreePorts {
    private static let handedOut = Mutex<Set<UInt16>>([])

    /// Returns `count` different free ports.
    static func draw(_ count: Int) -> [UInt16] {
        (0..<count).map { _ in draw() }
    }

    /// Returns one free port.
    static func draw() -> UInt16 {
        while true {
            let port = UInt16.random(in: 10_000..<32_000)
            let isNew = handedOut.withLock { $0.insert(port).inserted }
            if isNew, canBind(port) { return port }
        }
    }

    private static func canBind(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(descriptor, generic, length) == 0
            }
        }
    }
}
