import Martlet
import MartletCore
import MartletTesting
import MartletTransport
import Synchronization
import Testing

/// Connects to a mock transport with streams that record the memory of each write, and accept only a part of it.
private final class WatchingConnector: StreamConnector {
    private final class Stream: ForwardingStream {
        let stream: any ByteStream
        let connector: WatchingConnector

        init(_ stream: any ByteStream, _ connector: WatchingConnector) {
            self.stream = stream
            self.connector = connector
        }

        func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
            let address = UInt(bitPattern: buffer.baseAddress)
            let count = buffer.count
            connector.list.withLock { $0.append((address: address, count: count)) }
            return unsafe try stream.write(UnsafeRawBufferPointer(rebasing: buffer.prefix(connector.limit)))
        }
    }

    private let connector: any StreamConnector
    private let limit: Int
    private let list = Mutex<[(address: UInt, count: Int)]>([])

    init(_ connector: any StreamConnector, limit: Int) {
        self.connector = connector
        self.limit = limit
    }

    /// The address and the size of the buffer of each write.
    var writes: [(address: UInt, count: Int)] { list.withLock { $0 } }

    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
        Stream(try await connector.connect(to: destination), self)
    }
}

@Suite("Memory of uploads")
struct UploadMemoryTests {
    @Test(
        "A body in memory is not copied, except for a beginning that is sent with the head",
        arguments: [0, 1, 60_000, 65_536, 65_537, 300_000], [40, 1000, .max])
    func shared(size: Int, limit: Int) async throws {
        let bytes = TestPattern.bytes(from: 0, count: size)
        let body = HTTPBody.bytes(bytes)
        let held = try #require(try body.bytesInMemory?.get())
        let base = unsafe held.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        try await MockTransport.withMock { request in
            .bytes(try await request.collectBody())
        } run: { mock in
            let connector = WatchingConnector(mock, limit: limit)
            let last = Mutex(TransferProgress())
            let session = HTTPSession.own { $0.connector = connector }
            let exchange = try await session.upload(body, to: mock.url()) { progress in
                last.withLock { $0 = progress }
            }
            #expect(exchange.body == bytes)
            #expect(last.withLock { $0.completedByteCount } == UInt64(size))
            let writes = connector.writes
            let copied = writes.filter { !(base..<base + UInt(size)).contains($0.address) }
            #expect(copied.allSatisfy { $0.count <= 65_536 + 1000 })
            #expect((copied.count < writes.count) == (size > 65_536))
            // One system call suffices for a small request.
            if size <= 60_000, limit == .max { #expect(writes.count == 1) }
        }
    }
}
