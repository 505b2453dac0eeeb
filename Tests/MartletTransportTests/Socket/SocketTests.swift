@testable import MartletTransport
import Testing

@Suite("Sockets and their descriptors")
struct SocketTests {
    @Test("A descriptor stays open while a call uses it, even if the socket is closed")
    func guardedDescriptor() async throws {
        let loop = try EventLoop.shared.get()
        let socket = try Descriptor(.ipv4).register(with: loop)
        let isOpenInside = socket.withDescriptor { descriptor -> Bool in
            socket.close()
            return isOpen(descriptor)
        }
        #expect(isOpenInside == true)
        #expect(socket.isClosed)
        #expect(socket.withDescriptor { $0 } == nil)
    }

    @Test("Concurrent closing from many threads during calls closes once")
    func closingRaces() async throws {
        let loop = try EventLoop.shared.get()
        for _ in 0..<300 {
            let socket = try Descriptor(.ipv4).register(with: loop)
            let numbers = await withTaskGroup(of: Int32?.self) { group in
                for index in 0..<6 {
                    group.addTask {
                        if index % 3 == 0 { socket.close() }
                        return socket.withDescriptor { isOpen($0) ? $0 : nil } ?? -1
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            // A call has an open descriptor or none.
            #expect(numbers.allSatisfy { $0 != nil })
            #expect(socket.isClosed)
        }
    }

    private func connect(to address: SocketAddress, _ loop: EventLoop) async throws(TransportError) {
        let attempt = try ConnectAttempt(to: address, options: SocketOptions(), loop: loop)
        try await attempt.finish(until: StreamPair.soon)
    }

    @Test("Connecting to an address without a listener fails with the reason")
    func refused() async throws {
        let loop = try EventLoop.shared.get()
        let free = try #require(SocketAddress(literal: "127.0.0.1", port: 0))
        // The port is bound without a listener during the test, so that no other process can listen there.
        let descriptor = try Descriptor(.ipv4)
        try descriptor.bind(to: free)
        let holder = try descriptor.register(with: loop)
        defer { holder.close() }
        let address = try #require(holder.localAddress)
        let error = await #expect(throws: TransportError.self) {
            try await connect(to: address, loop)
        }
        guard case .connect(let failures) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(failures.map(\.error.code) == [111])
        #expect(failures.first?.address == address.description)
    }

    @Test("Closing a listener ends the wait for a connection")
    func closedListener() async throws {
        let loop = try EventLoop.shared.get()
        let free = try #require(SocketAddress(literal: "127.0.0.1", port: 0))
        let listener = try Listener(address: free, loop: loop)
        let accepting = Task { () -> Bool in
            do throws(TransportError) {
                _ = try await listener.accept(loop: loop)
                return false
            } catch {
                if case .closed = error { return true }
                return false
            }
        }
        listener.close()
        #expect(await accepting.value)
    }
}
