import SystemPackage

/// Reads from a descriptor into arrays.
enum DescriptorReading {
    /// As many bytes as there are, up to a limit; empty at the end. Blocks.
    static func read(_ file: FileDescriptor, atMost limit: Int) throws -> [UInt8] {
        try unsafe [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            count = unsafe try file.read(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }
}
