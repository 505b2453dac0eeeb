import MartletTesting
import MartletWire
import Testing

@testable import MartletTransport

/// A minimal client that sends literal bytes and returns the received bytes.
final class RawClient: Sendable {
    let stream: any ByteStream

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    /// Connects to an origin's address, over TLS if a context is given.
    convenience init(_ origin: TestOrigin, tls: TLSContext? = nil, name: String = "localhost") async throws {
        try await self.init(origin.socketAddress, tls: tls, name: name)
    }

    /// Connects to a fault proxy.
    convenience init(_ proxy: FaultProxy, tls: TLSContext? = nil) async throws {
        let address = try #require(SocketAddress(literal: "127.0.0.1", port: proxy.port))
        try await self.init(address, tls: tls, name: "localhost")
    }

    private convenience init(_ address: SocketAddress, tls: TLSContext?, name: String) async throws {
        let loop = try EventLoop.shared.get()
        let attempt = try ConnectAttempt(to: address, options: SocketOptions(), loop: loop)
        let deadline = MonotonicTime.now().advanced(by: .seconds(300))
        try await attempt.finish(until: deadline)
        if let tls {
            self.init(
                try await TLSStream.connect(
                    socket: attempt.socket, context: tls, serverName: name, port: address.port ?? 0,
                    deadline: deadline))
        } else {
            self.init(PlainStream(socket: attempt.socket, remoteAddress: address))
        }
    }

    convenience init(_ mock: MockTransport) async throws {
        self.init(try await mock.connect(to: Destination(isSecure: false, host: "mock.example", port: 80)))
    }

    func send(_ text: String) async throws {
        try await send(Array(text.utf8))
    }

    func send(_ bytes: [UInt8]) async throws {
        var offset = 0
        while offset < bytes.count {
            let count = try stream.write(bytes, from: offset)
            if count == 0 {
                try await stream.waitUntilWritable(until: MonotonicTime.now().advanced(by: .seconds(300)))
            }
            offset += count
        }
    }

    /// Returns the next bytes, or `nil` at the end.
    func receive(_ limit: Int = 65_536) async throws -> [UInt8]? {
        while true {
            var buffer = [UInt8](repeating: 0, count: limit)
            let outcome = try unsafe buffer.withUnsafeMutableBytes { raw throws(TransportError) in
                try unsafe stream.read(into: raw)
            }
            switch outcome {
            case .bytes(let count): return Array(buffer.prefix(count))
            case .endOfStream: return nil
            case .wouldBlock:
                try await stream.waitUntilReadable(until: MonotonicTime.now().advanced(by: .seconds(300)))
            }
        }
    }

    /// Returns all bytes up to the end and whether the end was clean; a reset throws.
    func receiveAll() async throws -> [UInt8] {
        var all: [UInt8] = []
        while let bytes = try await receive() { all += bytes }
        return all
    }

    /// Returns all bytes up to and including a text.
    func receive(through end: String) async throws -> String {
        let wanted = Array(end.utf8)
        var all: [UInt8] = []
        while all.suffix(wanted.count) != wanted[...] {
            guard let next = try await receive(1) else {
                throw RawFailure.ended(String(decoding: all, as: UTF8.self))
            }
            all += next
        }
        return String(decoding: all, as: UTF8.self)
    }

    /// Returns exactly `count` bytes.
    func receive(exactly count: Int) async throws -> [UInt8] {
        var all: [UInt8] = []
        while all.count < count {
            guard let next = try await receive(min(65_536, count - all.count)) else {
                throw RawFailure.ended(String(decoding: all.prefix(200), as: UTF8.self))
            }
            all += next
        }
        return all
    }

    /// Reads a response with a Content-Length, in chunks, or without a body.
    func response(isHead: Bool = false) async throws -> RawResponse {
        let head = try await receive(through: "\r\n\r\n")
        var response = RawResponse(head: head)
        if !isHead, response.field("Transfer-Encoding") == "chunked" {
            while let size = Int(try await receive(through: "\r\n").dropLast(1), radix: 16), size > 0 {
                response.body += try await receive(exactly: size)
                _ = try await receive(exactly: 2)
            }
            _ = try await receive(exactly: 2)
            return response
        }
        guard !isHead, let length = response.field("Content-Length").flatMap({ Int($0) }) else {
            return response
        }
        return RawResponse(head: head, body: try await receive(exactly: length))
    }

    /// Sends a request without a body and reads its response.
    func get(_ target: String, method: String = "GET", fields: String = "") async throws -> RawResponse {
        try await send("\(method) \(target) HTTP/1.1\r\nHost: test\r\n\(fields)\r\n")
        return try await response(isHead: method == "HEAD")
    }

    func close() {
        stream.close()
    }
}

enum RawFailure: Error {
    case ended(String)
}

/// A response as the raw client received it.
struct RawResponse {
    let head: String
    var body: [UInt8] = []

    var status: Int { Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0 }

    var text: String { String(decoding: body, as: UTF8.self) }

    func field(_ name: String) -> String? {
        for line in head.split(separator: "\r\n").dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2, parts[0].lowercased() == name.lowercased() {
                return parts[1].drop { $0 == " " }.description
            }
        }
        return nil
    }
}

extension RawClient {
    /// Reads to the end and returns whether it was clean.
    func end() async throws -> Bool {
        while true {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let outcome = try unsafe buffer.withUnsafeMutableBytes { raw throws(TransportError) in
                try unsafe stream.read(into: raw)
            }
            switch outcome {
            case .bytes: continue
            case .endOfStream(let isClean): return isClean
            case .wouldBlock:
                try await stream.waitUntilReadable(until: MonotonicTime.now().advanced(by: .seconds(300)))
            }
        }
    }
}
