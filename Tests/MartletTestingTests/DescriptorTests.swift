import FoundationEssentials
import MartletTesting
import MartletTransport
import SystemPackage
import Testing

@Suite("Descriptors")
struct DescriptorTests {
    /// Reads a file of the kernel's, which gives a page at a time.
    private func kernelTable(_ path: FilePath) throws -> String {
        let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
        return try file.closeAfter {
            var all: [UInt8] = []
            while true {
                var page = [UInt8](repeating: 0, count: 4096)
                let count = try unsafe page.withUnsafeMutableBytes { try unsafe file.read(into: $0) }
                if count == 0 { return String(decoding: all, as: UTF8.self) }
                all += page.prefix(count)
            }
        }
    }

    /// How many sockets of this process are bound to a local TCP port. Other tests have other ports, so that
    /// they may run at the same time.
    private func socketCount(onPort port: Int) throws -> Int {
        let table = try kernelTable("/proc/self/net/tcp")
        let suffix =
            ":" + String(repeating: "0", count: 4 - String(port, radix: 16).count)
            + String(port, radix: 16, uppercase: true)
        var inodes: Set<String> = []
        for line in table.split(separator: "\n").dropFirst() {
            let columns = line.split(separator: " ")
            if columns.count > 9, columns[1].hasSuffix(suffix) { inodes.insert("socket:[\(columns[9])]") }
        }
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        return descriptors.filter { descriptor in
            let target = try? FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/self/fd/\(descriptor)")
            return target.map { inodes.contains($0) } ?? false
        }.count
    }

    @Test("Stopping closes the listening socket and that of every connection, plain and over TLS")
    func stopClosesAll() async throws {
        for options in [OriginOptions.plain, .tls()] {
            let origin = try await TestOrigin.start(options) { _ in throw OriginFault(.stall) }
            var clients: [RawClient] = []
            for _ in 0..<20 {
                let client = try await RawClient(origin)
                if options.tls == nil { try await client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n") }
                clients.append(client)
            }
            try await origin.ledger.waitForConnections(count: 20)
            let open = try socketCount(onPort: origin.port)
            #expect(open == 21)
            await origin.stop()
            #expect(try socketCount(onPort: origin.port) == 0)
            for client in clients { client.close() }
        }
    }

    @Test("Hundreds of connections at once are all served and all closed")
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
            try await origin.ledger.waitForOpenConnections(atMost: 0)
            #expect(origin.ledger.counts.responses == 900)
            #expect(try socketCount(onPort: origin.port) == 1)
        }
    }
}
