import MartletWire

extension WireLimits {
    /// The limits that a control byte asks for: bit 0 refuses what may be mended, bit 1 refuses a bare LF,
    /// bit 2 makes all limits so small that inputs reach them.
    init(_ input: FuzzInput, at place: Int) {
        self.init()
        isStrict = input.isSet(0, at: place)
        toleratesBareLineFeed = !input.isSet(1, at: place)
        guard input.isSet(2, at: place) else { return }
        headByteLimit = 160
        lineByteLimit = 48
        lineCountLimit = 6
        informationalResponseLimit = 2
        chunkExtensionByteLimit = 12
        trailerByteLimit = 40
        chunkSizeDigitLimit = 4
    }
}
