@testable import MartletTransport
import Testing

/// The two ends of a connection, in memory or over loopback.
enum StreamPair: String, CaseIterable, Sendable {
    case memory
    case tcp

    func make() async throws -> (client: any ByteStream, server: any ByteStream) {
        let loop = try EventLoop.shared.get()
        switch self {
        case .memory:
            let pair = MemoryStream.pair(loop: loop)
            return (pair.client, pair.server)
        case .tcp:
            return try await StreamPair.tcp(on: loop)
        }
    }

    /// A connection over loopback whose both ends use a loop.
    static func tcp(on loop: EventLoop) async throws -> (client: any ByteStream, server: any ByteStream) {
        let address = try #require(SocketAddress(literal: "127.0.0.1", port: 0))
        let listener = try Listener(address: address, loop: loop)
        defer { listener.close() }
        let attempt = try ConnectAttempt(to: listener.address, options: SocketOptions(), loop: loop)
        let accepted = try await listener.accept(loop: loop)
        try await attempt.finish(until: StreamPair.soon)
        return (
            PlainStream(socket: attempt.socket, remoteAddress: listener.address),
            PlainStream(socket: accepted, remoteAddress: nil)
        )
    }

    /// A deadline in 600 s, which a working stream never reaches even on a stalled machine.
    static var soon: MonotonicTime { MonotonicTime.now().advanced(by: .seconds(600)) }
}

extension ByteStream {
    /// Writes all bytes.
    func send(_ bytes: [UInt8]) async throws(TransportError) {
        var offset = 0
        while offset < bytes.count {
            let count = try write(bytes, from: offset)
            if count == 0 { try await waitUntilWritable(until: StreamPair.soon) }
            offset += count
        }
    }

    /// Reads the available bytes and waits for them if necessary; `nil` at the end.
    func receive(atMost count: Int = 65_536) async throws(TransportError) -> [UInt8]? {
        while true {
            var outcome = Result<ReadOutcome, TransportError>.success(.wouldBlock)
            let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                do throws(TransportError) {
                    let read = unsafe try self.read(into: UnsafeMutableRawBufferPointer(buffer))
                    if case .bytes(let number) = read { filled = number }
                    outcome = .success(read)
                } catch {
                    outcome = .failure(error)
                }
            }
            switch try outcome.get() {
            case .bytes: return bytes
            case .endOfStream: return nil
            case .wouldBlock: try await waitUntilReadable(until: StreamPair.soon)
            }
        }
    }

    /// Tries to read and returns whether no bytes were available.
    func readsNothing() throws(TransportError) -> Bool {
        var byte: UInt8 = 0
        var outcome = Result<ReadOutcome, TransportError>.success(.wouldBlock)
        unsafe withUnsafeMutableBytes(of: &byte) { buffer in
            do throws(TransportError) {
                outcome = .success(unsafe try self.read(into: buffer))
            } catch {
                outcome = .failure(error)
            }
        }
        return try outcome.get() == .wouldBlock
    }
}
