/// What the files of an interface say of it (`/sys/class/net/NAME`).
package struct InterfaceTraits: Hashable, Sendable {
    /// Whether it has the marks of IEEE 802.11.
    package var isWireless = false
    /// The kind of device that its driver says, such as `wwan`.
    package var deviceType: String?

    /// Traits.
    package init(isWireless: Bool = false, deviceType: String? = nil) {
        self.isWireless = isWireless
        self.deviceType = deviceType
    }

    /// The kind that `uevent` names: its line is `DEVTYPE=wwan`.
    package static func deviceType(inEvent bytes: [UInt8]) -> String? {
        for line in bytes.split(separator: UInt8(ascii: "\n")) where line.starts(with: "DEVTYPE=".utf8) {
            return String(decoding: line.dropFirst(8), as: UTF8.self)
        }
        return nil
    }
}
