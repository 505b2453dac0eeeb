import Foundation
import Glibc
import Martlet
import MartletTesting
import MartletTestSupport
import SystemPackage
import Testing

/// Servers whose certificate changes suddenly.
@Suite("A certificate that changes during a download")
struct CertificateChangeTests {
    /// Routes connections to one of several sockets: a link to one socket, replaced by a link to another.
    private struct Switch {
        let directory: DownloadDirectory

        var path: String { "\(directory.path)/s" }

        func socket(_ name: String) -> OriginOptions.Binding { .unix(path: "\(directory.path)/\(name)") }

        func lead(to name: String) throws {
            try FileManager.default.createSymbolicLink(
                atPath: path + "-", withDestinationPath: "\(directory.path)/\(name)")
            // The rename is atomic, so that the path always leads to a socket.
            guard unsafe rename(path + "-", path) == 0 else { throw CocoaError(.fileWriteUnknown) }
        }
    }

    @Test(
        "A certificate that changes between two segments fails the download and keeps the stored bytes",
        arguments: [OriginTLS.Certificate.expired, .unknownAuthority, .wrongName, .selfSigned])
    func betweenSegments(_ certificate: OriginTLS.Certificate) async throws {
        // The file is larger than the first range, and each request has its own connection.
        let version = RangeVersion(20 << 20, entityTag: "\"segments\"")
        let conduct = RangeBehavior(version, acts: [.hold(request: 1, after: 1, "first")]).with {
            $0.fields["Connection"] = "close"
        }
        let ranges = RangeOrigin(conduct)
        let other = RangeOrigin(RangeBehavior(version))
        let directory = try DownloadDirectory()
        let way = Switch(directory: try DownloadDirectory())
        let good = OriginOptions(binding: way.socket("g"), tls: OriginTLS(.trusted))
        let bad = OriginOptions(binding: way.socket("b"), tls: OriginTLS(certificate))
        try await TestOrigin.withOrigin(good, handler: ranges.handler) { origin in
            try await TestOrigin.withOrigin(bad, handler: other.handler) { _ in
                defer { ranges.release() }
                let session = HTTPSession.own(origin) { $0.unixSocketPath = way.path }
                let path = directory.file(RangeScene.name)
                let url = "https://localhost/\(RangeScene.name)"
                try way.lead(to: "g")
                let download = try session.startDownload(
                    url, to: .file(path), options: RangeScene.options)
                try await ranges.signals.wait(for: "first")
                try way.lead(to: "b")
                ranges.signals.raise("first go")
                let error = await #expect(throws: HTTPError.self) { try await download.value }
                #expect(error?.code == .tlsFailed, "\(String(describing: error))")
                #expect(other.requests.isEmpty, "a request went to a server that cannot be trusted")
                #expect(ranges.requests.count == 1)
                #expect(try !directory.names().contains(RangeScene.name))
                let kept = try #require(error?.resumableByteCount)
                #expect(kept <= 8 << 20)
                // With the correct certificate the download resumes.
                try way.lead(to: "g")
                ranges.play(RangeBehavior(version))
                let result = try await session.download(url, to: path, options: RangeScene.options)
                #expect(result.resumedByteCount == kept)
                #expect(try directory.names() == [RangeScene.name])
                #expect(try directory.version(of: RangeScene.name, among: [version]) == 0)
                await session.invalidateAndCancel()
            }
        }
    }
}
