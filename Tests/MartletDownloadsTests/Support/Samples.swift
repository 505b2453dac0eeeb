import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport

/// The file versions and server behaviors that most tests start with.
enum Samples {
    static let one = RangeVersion(300_000, entityTag: "\"one\"")
    static let two = RangeVersion(310_001, place: 9_001, entityTag: "\"two\"")
    /// A version with the length of the first, and a difference in each byte.
    static let sameLength = RangeVersion(300_000, place: 20_011, entityTag: "\"two\"")

    /// The offset at which earlier runs were cut, in bytes.
    static let cut: UInt64 = 100_000

    /// Serves a version, and cuts the first response at ``cut``.
    static func cutOnce(_ version: RangeVersion = one, after count: UInt64 = cut) -> RangeBehavior {
        RangeBehavior(version, acts: [.cut(request: 1, after: count)])
    }

    /// Returns a version without validators.
    static func bare(_ version: RangeVersion) -> RangeVersion {
        RangeVersion(version.byteCount, place: version.place)
    }

    /// Returns a version with a weak entity tag.
    static func weak(_ version: RangeVersion) -> RangeVersion {
        RangeVersion(
            version.byteCount, place: version.place, entityTag: version.entityTag.map { "W/" + $0 })
    }

    /// Returns a version with only a date, which is a number of seconds before that of the responses.
    static func dated(_ version: RangeVersion, before seconds: Int64) -> RangeVersion {
        RangeVersion(version.byteCount, place: version.place, lastModified: date - seconds)
    }

    /// The Date of responses in tests that need it: in November 2023.
    static let date: Int64 = 1_700_000_000

    static func sha256(_ version: RangeVersion) throws -> Checksum {
        Checksum.sha256(
            String(
                decoding: MessageDigest.hexadecimal(try MessageDigest.digest(.sha256, of: version.contents)),
                as: UTF8.self))
    }
}
