import MartletWire

/// Seconds as `Cache-Control` and `Age` write them (RFC 9111 §1.2.2).
enum DeltaSeconds {
    /// The most seconds that are told apart, 2^31: larger numbers, however long, count as this.
    static let limit: Int64 = 1 << 31

    /// The seconds that digits mean, 0…2^31, or nil where they are anything but digits: no sign, point or blank.
    static func value(of digits: ArraySlice<UInt8>) -> Int64? {
        switch DecimalNumber(digits) {
        case .value(let value): value > UInt64(limit) ? limit : Int64(value)
        case .overflow: limit
        case .invalid: nil
        }
    }
}
