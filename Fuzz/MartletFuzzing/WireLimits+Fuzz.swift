import MartletWire

extension WireLimits {
    /// Creates the limits that a control byte selects: bit 0 sets strict mode, bit 1 rejects a bare LF, and bit 2 makes
    /// all limits so small that inputs reach them.
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
