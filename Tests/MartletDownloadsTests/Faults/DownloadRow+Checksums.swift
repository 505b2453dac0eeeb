import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension DownloadRow {
    private static let one = Samples.one

    /// Rows about checksums that the caller or the server gives (RFC 9530).
    static let checksums: [DownloadRow] = [
        DownloadRow(
            "N1", "a correct checksum is verified, even for a file from two runs",
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
            "N1", "the server's digest is always verified",
            RangeBehavior(one).with { $0.fields["Repr-Digest"] = digest(of: one) }, .complete(0),
            audit: { run in
                #expect(run.value?.verified.map(\.algorithm) == [.sha256], "\(run.log)")
            }),
        DownloadRow(
            "N1", "a file that does not match the server's digest is not published",
            RangeBehavior(one).with { $0.fields["Repr-Digest"] = digest(of: Samples.two) },
            .fails([.checksumMismatch]), recovers: false),
        DownloadRow(
            "N1", "a digest of an unknown function or with invalid digits is ignored",
            RangeBehavior(one).with { $0.fields["Repr-Digest"] = "unixsum=:AAA=:, sha-256=nonsense, ;;" },
            .complete(0)),
        DownloadRow(
            "N1", "the checksum detects bytes that were damaged between two runs",
            earlier: Samples.cutOnce(RangeVersion(300_000, place: 5, entityTag: "\"one\"")),
            RangeBehavior(one), .completeOrFails, change: { $0.checksum = try Samples.sha256(one) },
            audit: { run in
                // The tag is the same for other bytes: only the checksum reveals it.
                if let error = run.error { #expect(error.code == .checksumMismatch, "\(run.log)") }
            }),
    ]

    private static func digest(of version: RangeVersion) -> String {
        let bytes = (try? Samples.sha256(version).bytes) ?? []
        return "sha-256=:\(Data(bytes).base64EncodedString()):"
    }
}
