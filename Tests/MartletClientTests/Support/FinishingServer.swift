import Foundation
import Glibc
import Synchronization

/// A loopback server that ends a connection in the same segment as the response, so that the end causes no separate
/// readiness event.
///
/// `/redirect` gets a 307 to `/end` and the connection's end. `/held` gets a 200 and the connection's end after
/// ``release()``. `/end` gets a 200, and the connection stays open. The server blocks, so it has its own threads.
final class FinishingServer: Sendable {
    /// The kernel could not create a socket.
    struct NoSocket: Error {}

    private struct Counts {
        var held = 0
        var completed = 0
        var ended = 0
        var late: Set<Int> = []
    }

    private let listener: Int32
    private let counts = Mutex(Counts())
    private let gate = DispatchSemaphore(value: 0)
    /// The port on which the server listens.
    let port: Int

    /// Starts the server.
    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                guard unsafe bind(listener, pointer, length) == 0, listen(listener, 64) == 0 else {
                    return false
                }
                return unsafe getsockname(listener, pointer, &length) == 0
            }
        }
        guard isBound else {
            Glibc.close(listener)
            throw NoSocket()
        }
        self.listener = listener
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                Thread.detachNewThread { [self] in serve(connection) }
            }
        }
    }

    /// The number of requests to `/held`.
    var heldCount: Int { counts.withLock { $0.held } }
    /// The number of requests to `/end`.
    var completedCount: Int { counts.withLock { $0.completed } }

    /// The number of connections that the server has ended.
    var endedCount: Int { counts.withLock { $0.ended } }

    /// Whether a connection ended so late that the kernel may have sent the response separately.
    /// - Parameter number: The number of the connection among those that were ended, from 1 on.
    func wasLate(_ number: Int) -> Bool { counts.withLock { $0.late.contains(number) } }

    /// Responds to one request to `/held`.
    func release() { gate.signal() }

    /// Stops listening. Connections end when their clients end them.
    func close() {
        shutdown(listener, Int32(SHUT_RDWR))
        Glibc.close(listener)
    }

    /// Returns a URL of the server.
    func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    private func serve(_ connection: Int32) {
        defer { Glibc.close(connection) }
        while let path = readRequest(connection) {
            switch path {
            case "/redirect":
                return end(connection, "307 Temporary Redirect", "Location: /end\r\n")
            case "/held":
                counts.withLock { $0.held += 1 }
                gate.wait()
                return end(connection, "200 OK")
            default:
                counts.withLock { $0.completed += 1 }
                respond(connection, "200 OK")
            }
        }
    }

    /// Reads a request with a body of known length.
    /// - Returns: Its path; `nil` at the end.
    private func readRequest(_ connection: Int32) -> String? {
        var received: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4096)
        while true {
            let text = String(decoding: received, as: UTF8.self)
            if let end = text.range(of: "\r\n\r\n") {
                let head = text[..<end.lowerBound].lowercased()
                let length =
                    head.split(separator: "\r\n").first { $0.hasPrefix("content-length: ") }
                    .flatMap { Int($0.dropFirst(16)) } ?? 0
                if text[end.upperBound...].utf8.count >= length {
                    return head.split(separator: " ").dropFirst().first.map(String.init)
                }
            }
            let count = unsafe recv(connection, &piece, piece.count, 0)
            guard count > 0 else { return nil }
            received += piece[..<count]
        }
    }

    private func end(_ connection: Int32, _ status: String, _ fields: String = "") {
        let start = ContinuousClock.now
        // With MSG_MORE the kernel holds the bytes until the end follows, for at most 200 ms (tcp(7), TCP_CORK).
        respond(connection, status, fields, isLast: true)
        shutdown(connection, Int32(SHUT_WR))
        let isLate = ContinuousClock.now - start > .milliseconds(100)
        counts.withLock { counts in
            counts.ended += 1
            if isLate { counts.late.insert(counts.ended) }
        }
    }

    private func respond(_ connection: Int32, _ status: String, _ fields: String = "", isLast: Bool = false) {
        let bytes = Array("HTTP/1.1 \(status)\r\n\(fields)Content-Length: 2\r\n\r\nok".utf8)
        let flags = Int32(MSG_NOSIGNAL) | (isLast ? Int32(MSG_MORE) : 0)
        _ = unsafe send(connection, bytes, bytes.count, flags)
    }
}
