import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension DownloadRow {
    private static let one = Samples.one

    /// What a file must come to, said by the caller or by the server (RFC 9530).
    static let checksums: [DownloadRow] = [
        DownloadRow(
            "N1", "the right checksum is verified, of a file that came in two runs too",
            earlier: Samples.cutOnce(), keeps: Samples.cut, RangeBehavior(one), .complete(0),
            change: { $0.checksum = try Samples.sha256(one) },
            audit: { run in
                #expect(run.value?.verified.map(\.algorithm) == [.sha256])
                #expect(run.value?.resumedByteCount == Samples.cut)
            }),
        DownloadRow(
            "N1", "a wrong checksum leaves no file",
            RangeBehavior(one), .fails([.checksumMismatch], saying: ["sha256"]), recovers: false,
            change: { $0.checksum = try Samples.sha256(Samples.two) }),
        DownloadRow(
            "N1", "the server's digest is verified unasked",
            RangeBehavior(one).with { $0.fields["Repr-Digest"] = digest(of: one) }, .complete(0),
            audit: { run in
                #expect(run.value?.verified.map(\.algorithm) == [.sha256], "\(run.log)")
            }),
        DownloadRow(
            "N1", "a file that is not what the server's digest says gets no name",
            RangeBehavior(one).with { $0.fields["Repr-Digest"] = digest(of: Samples.two) },
            .fails([.checksumMismatch]), recovers: false),
        DownloadRow(
            "N1", "a digest of an unknown function, or one that cannot be read, is none",
            RangeBehavior(one).with { $0.fields["Repr-Digest"] = "unixsum=:AAA=:, sha-256=nonsense, ;;" },
            .complete(0)),
        DownloadRow(
            "N1", "bytes that were damaged between two runs are found by the checksum",
            earlier: Samples.cutOnce(RangeVersion(300_000, place: 5, entityTag: "\"one\"")),
            RangeBehavior(one), .completeOrFails, change: { $0.checksum = try Samples.sha256(one) },
            audit: { run in
                // The same tag for other bytes: only the checksum can tell.
                if let error = run.error { #expect(error.code == .checksumMismatch, "\(run.log)") }
            }),
    ]

    private static func digest(of version: RangeVersion) -> String {
        let bytes = (try? Samples.sha256(version).bytes) ?? []
        return "sha-256=:\(Data(bytes).base64EncodedString()):"
    }
}
