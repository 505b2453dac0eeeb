import Glibc
@testable import MartletTransport
import Testing

@Suite("Service classes")
struct ServiceClassTests {
    @Test("Sockets of both families are marked with the service class", arguments: [false, true])
    func mark(isIPv6: Bool) async throws {
        let loop = try EventLoop.shared.get()
        let literal = isIPv6 ? "::1" : "127.0.0.1"
        let listener = try Listener(
            address: try #require(SocketAddress(literal: literal, port: 0)), loop: loop)
        defer { listener.close() }
        let classes: [ServiceClass?] = [nil, .background, .voice, ServiceClass.codePoint(63)]
        for serviceClass in classes {
            var options = SocketOptions()
            options.serviceClass = serviceClass
            let attempt = try ConnectAttempt(to: listener.address, options: options, loop: loop)
            let mark = ServiceClassTests.mark(of: attempt.socket, isIPv6)
            #expect(mark == (serviceClass?.codePoint ?? 0) << 2)
            attempt.socket.close()
        }
    }

    @Test("A stream is marked again for each of its users", arguments: [false, true])
    func change(isIPv6: Bool) async throws {
        let loop = try EventLoop.shared.get()
        let literal = isIPv6 ? "::1" : "127.0.0.1"
        let listener = try Listener(
            address: try #require(SocketAddress(literal: literal, port: 0)), loop: loop)
        defer { listener.close() }
        let attempt = try ConnectAttempt(to: listener.address, options: SocketOptions(), loop: loop)
        let stream = PlainStream(socket: attempt.socket, remoteAddress: listener.address)
        defer { stream.close() }
        for serviceClass in [ServiceClass.voice, .bestEffort, .background] {
            stream.mark(serviceClass)
            #expect(ServiceClassTests.mark(of: attempt.socket, isIPv6) == serviceClass.codePoint << 2)
        }
    }

    private static func mark(of socket: Socket, _ isIPv6: Bool) -> Int32? {
        socket.withDescriptor { descriptor -> Int32 in
            var value: Int32 = -1
            var length = socklen_t(MemoryLayout<Int32>.size)
            let level = Int32(isIPv6 ? IPPROTO_IPV6 : IPPROTO_IP)
            _ = unsafe getsockopt(descriptor, level, isIPv6 ? IPV6_TCLASS : IP_TOS, &value, &length)
            return value
        }
    }

    @Test("Code points range from 0 to 63", arguments: [-1, 64, Int.max, Int.min])
    func range(number: Int) {
        #expect(ServiceClass.codePoint(number) == nil)
    }
}
