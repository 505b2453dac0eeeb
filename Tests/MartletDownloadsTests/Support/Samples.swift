import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport

/// The versions and conducts that most tests begin with.
enum Samples {
    static let one = RangeVersion(300_000, entityTag: "\"one\"")
    static let two = RangeVersion(310_001, place: 9_001, entityTag: "\"two\"")
    /// As long as the first, and different in each byte.
    static let sameLength = RangeVersion(300_000, place: 20_011, entityTag: "\"two\"")

    /// Where earlier runs were cut.
    static let cut: UInt64 = 100_000

    /// Serves a version, and ends the first answer at ``cut``.
    static func cutOnce(_ version: RangeVersion = one, after count: UInt64 = cut) -> RangeBehavior {
        RangeBehavior(version, acts: [.cut(request: 1, after: count)])
    }

    /// A version without validators.
    static func bare(_ version: RangeVersion) -> RangeVersion {
        RangeVersion(version.byteCount, place: version.place)
    }

    /// A version with a weak entity tag.
    static func weak(_ version: RangeVersion) -> RangeVersion {
        RangeVersion(
            version.byteCount, place: version.place, entityTag: version.entityTag.map { "W/" + $0 })
    }

    /// A version with a date alone, so many seconds before that of the answers.
    static func dated(_ version: RangeVersion, before seconds: Int64) -> RangeVersion {
        RangeVersion(version.byteCount, place: version.place, lastModified: date - seconds)
    }

    /// The Date of answers where it matters: in November 2023.
    static let date: Int64 = 1_700_000_000

    static func sha256(_ version: RangeVersion) throws -> Checksum {
        Checksum.sha256(
            String(
                decoding: MessageDigest.hexadecimal(try MessageDigest.digest(.sha256, of: version.contents)),
                as: UTF8.self))
    }
}
