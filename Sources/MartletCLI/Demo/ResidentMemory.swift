import SystemPackage

/// The memory that the process holds, as the kernel counts it.
enum ResidentMemory {
    /// Bytes; `nil` where `/proc` is not there.
    static var byteCount: Int? {
        guard
            let file = try? FileDescriptor.open(
                FilePath("/proc/self/statm"), .readOnly, options: .closeOnExec)
        else { return nil }
        defer { try? file.close() }
        guard let bytes = try? DescriptorReading.read(file, atMost: 256) else { return nil }
        let numbers = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        return numbers.count > 1 ? Int(numbers[1]).map { $0 * 4096 } : nil
    }
}
