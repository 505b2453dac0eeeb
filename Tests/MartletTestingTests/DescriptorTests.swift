import FoundationEssentials
import Glibc
import MartletTesting
import MartletTransport
import Testing

@Suite("Descriptors")
struct DescriptorTests {
    /// Returns the number of this process's sockets that are bound to an origin's address and port.
    ///
    /// No other test uses this address and port, even after the origin stops. Each descriptor is queried, because the
    /// kernel's socket table is read page by page and can miss a line during changes.
    private func socketCount(of origin: TestOrigin) throws -> Int {
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        return descriptors.compactMap { Int32($0) }.filter { descriptor in
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isNamed = unsafe withUnsafeMutablePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                    unsafe getsockname(descriptor, generic, &length) == 0
                }
            }
            guard isNamed, address.sin_family == sa_family_t(AF_INET) else { return false }
            let host = UInt32(bigEndian: address.sin_addr.s_addr)
            let bytes = [24, 16, 8, 0].map { String(host >> $0 & 255) }
            return origin.address == "\(bytes.joined(separator: ".")):\(UInt16(bigEndian: address.sin_port))"
        }.count
    }

    @Test("Stopping closes the listening socket and all connections, plain and over TLS")
    func stopClosesAll() async throws {
        for tls in [OriginTLS?.none, .trusted] {
            var options = OriginOptions.onOwnAddress(4)
            options.tls = tls
            let origin = try await TestOrigin.start(options) { _ in throw OriginFault(.stall) }
            var clients: [RawClient] = []
            for _ in 0..<20 {
                let client = try await RawClient(origin)
                if options.tls == nil { try await client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n") }
                clients.append(client)
            }
            try await origin.recorder.waitForConnections(count: 20)
            let open = try socketCount(of: origin)
            #expect(open == 21)
            await origin.stop()
            #expect(try socketCount(of: origin) == 0)
            for client in clients { client.close() }
        }
    }

    @Test("Hundreds of concurrent connections are all served and closed")
    func servesMany() async throws {
        try await TestOrigin.withOrigin(handler: .bytes(10_000)) { origin in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<300 {
                    group.addTask {
                        let client = try await RawClient(origin)
                        for _ in 0..<3 { #expect(try await client.get("/").body.count == 10_000) }
                        client.close()
                    }
                }
                try await group.waitForAll()
            }
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            #expect(origin.recorder.counts.responses == 900)
            #expect(try socketCount(of: origin) == 1)
        }
    }
}
